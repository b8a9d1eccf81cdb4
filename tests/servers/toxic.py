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
import json
import socket
import struct
import threading
import zlib

BODY = b'{"jsonrpc": "2.0", "id": 1, "result": {}}'
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB_SIZE = 256 << 20


@functools.lru_cache
def packed_spaces():
    """A gzip of BOMB_SIZE spaces, made a piece at a time: the memory of this process is counted as its children's too."""
    packer, piece = zlib.compressobj(9, wbits=31), b" " * (1 << 20)
    return b"".join(packer.compress(piece) for _ in range(BOMB_SIZE >> 20)) + packer.flush()


class Toxic:
    def __init__(self, kind, redirect_to=None, port=0):
        self.answer, self.redirect_to, self.body = getattr(self, kind), redirect_to, b""
        self.requests, self.stopping = [], threading.Event()
        if kind == "bomb":
            packed_spaces()  # now, not while somebody waits for it
        self.socket = socket.create_server(("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                head, body = self.read(connection)
                if head:
                    self.requests.append(head.decode("latin-1"))
                    self.body = body
                    self.answer(connection)
            except OSError:
                pass

    @staticmethod
    def read(connection):
        """Head and body of a request."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b"", b""
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
                while len(body) < size and (piece := connection.recv(65536)):
                    body += piece
        return head, body

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

    def close(self):
        self.stopping.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


class Receiver(Toxic):
    """No toxic: takes JSON with status 200, each with a connection of its own."""

    def __init__(self, bodies, port=0):
        self.bodies = bodies
        super().__init__("take", port=port)

    def take(self, connection):
        self.bodies.append(json.loads(self.body))
        self.say(connection, b"{}", "Connection: close")
