# SPDX-License-Identifier: Apache-2.0
"""Servers that do to every request what no server should:

    reset           a good answer's first half, then a reset
    drip            a byte a second, without end
    too_long        says more bytes than it sends
    too_short       says fewer bytes than it sends
    endless_header  header lines without end
    endless_body    a body without end
    bomb            a gzip of many megabytes of spaces, for which nobody asked
    redirect        a redirect to another server
    mute            never answers

Toxic(kind).requests holds the heads of what was asked; .url is http://127.0.0.1:PORT.
"""
import functools
import socket
import struct
import zlib

from . import listener

BODY = b'{"jsonrpc": "2.0", "id": 1, "result": {}}'
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB_SIZE = 256 << 20


@functools.lru_cache
def packed_spaces():
    """A gzip of BOMB_SIZE spaces, made a piece at a time: the memory of this process is counted as its children's too."""
    packer, piece = zlib.compressobj(9, wbits=31), b" " * (1 << 20)
    return b"".join(packer.compress(piece) for _ in range(BOMB_SIZE >> 20)) + packer.flush()


class Toxic(listener.Listener):
    def __init__(self, kind, redirect_to=None):
        self.answer, self.redirect_to, self.requests = getattr(self, kind), redirect_to, []
        if kind == "bomb":
            packed_spaces()  # now, not while somebody waits for it
        super().__init__()

    def serve(self, connection):
        if request := listener.read_request(connection):
            self.requests.append(request[0].decode("latin-1"))
            self.answer(connection)

    def say(self, connection, body, *lines, length=None):
        head = HEAD + "".join(line + "\r\n" for line in lines)
        connection.sendall(f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body)

    def reset(self, connection):
        self.say(connection, BODY[:9], length=len(BODY))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def drip(self, connection):
        self.say(connection, b"", length=1 << 30)
        while not self.stopping.wait(1):
            connection.sendall(b" ")

    def too_long(self, connection):
        self.say(connection, BODY, length=len(BODY) + 100)

    def too_short(self, connection):
        self.say(connection, BODY, length=len(BODY) - 5)

    def endless_header(self, connection):
        connection.sendall(HEAD.encode())
        while not self.stopping.is_set():
            connection.sendall(b"X-Header: " + b"x" * 1000 + b"\r\n")

    def endless_body(self, connection):
        connection.sendall(HEAD.encode() + b"\r\n")
        while not self.stopping.is_set():
            connection.sendall(b" " * 65536)

    def bomb(self, connection):
        self.say(connection, packed_spaces(), "Content-Encoding: gzip")

    def redirect(self, connection):
        connection.sendall(f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {self.redirect_to}\r\nContent-Length: 0\r\n\r\n".encode())

    def mute(self, _):
        self.stopping.wait(60)
