# SPDX-License-Identifier: Apache-2.0
"""What the scripted servers of the tests share: a socket that listens, a thread for each connection, and a request
read whole."""
import os
import socket
import threading
import urllib.parse


class Listener:
    """Accepts connections until close() and hands each to serve(connection) in a thread of its own. A context manager.

    address is (host, port), or the path of a unix socket, which every user may connect to. With begin=False nothing
    listens before start(). A subclass sets its own fields before it calls __init__, for a connection may come at once.
    """

    def __init__(self, address=("127.0.0.1", 0), begin=True):
        self.connections, self.stopping = 0, threading.Event()
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(address)
            os.chmod(address, 0o666)
            self.url = "http+unix://" + urllib.parse.quote(address, safe="")
        else:
            self.socket = socket.socket()
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # every connection has it from here
            self.socket.bind(address)
            self.url = "http://{}:{}".format(*self.socket.getsockname())
        if begin:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        self.socket.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.attend, args=(connection,), daemon=True).start()

    def attend(self, connection):
        """Serves a connection and closes it. A client that goes away early is part of the tests."""
        with connection:
            try:
                self.serve(connection)
            except OSError:
                pass

    def close(self):
        self.stopping.set()
        try:
            # close alone would leave the accepting thread its own hold on the socket.
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


def read_request(connection):
    """A request as its head, without the empty line that ends it, and its body, shorter than announced where the client
    went away. None: it went away before the head was whole."""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    size = int(lengths[0].split(b":")[1]) if lengths else 0
    while len(body) < size and (piece := connection.recv(1 << 20)):
        body += piece
    return bytes(head), bytes(body)
