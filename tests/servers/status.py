# SPDX-License-Identifier: Apache-2.0
"""A status server that answers as a test tells it, and keeps what it was sent.

Server(answers) takes one answer a request, the last for all that follow: a status, (status, headers), or a function of the connection,
which is handed over as it is. The body that came is in .bodies, decoded where it is JSON. With begin=False nothing listens before start().
"""
import json
import socket
import threading


def hang(connection):
    """Says nothing, until the client goes."""
    while connection.recv(65536):
        pass


def drop(connection):
    """Closes without a word."""


def drip(connection):
    """Endless headers, one after the other."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    number = 0
    connection.settimeout(0.1)
    while True:
        number += 1
        connection.sendall(b"X-Drip: %d\r\n" % number)
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            pass


class Server:
    def __init__(self, *answers, begin=True, path=None):
        self.answers = list(answers) or [204]
        self.bodies, self.heads, self.connections, self.arrived = [], [], 0, threading.Condition()
        self.socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.socket.bind(path or ("127.0.0.1", 0))
        self.url = "http+unix://" + path.replace("/", "%2F") + "/status" if path else \
            f"http://127.0.0.1:{self.socket.getsockname()[1]}/status"
        if begin:
            self.start()

    def start(self):
        self.socket.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while (request := self.read(connection)) and self.answer(connection, *request):
                    pass
            except OSError:
                pass

    def answer(self, connection, head, body):
        """Returns whether the connection goes on."""
        with self.arrived:
            self.heads.append(head.decode())
            self.bodies.append(body)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.arrived.notify_all()
        if callable(answer):
            answer(connection)
            return False
        status, headers = answer if isinstance(answer, tuple) else (answer, {})
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        text = b"" if status == 204 else b"so it is\n"
        length = "" if status == 204 else f"Content-Length: {len(text)}\r\n"
        connection.sendall(f"HTTP/1.1 {status} Said\r\n{lines}{length}\r\n".encode() + text)
        return True

    @staticmethod
    def read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return None
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        pieces = [body]
        while size > sum(map(len, pieces)) and (piece := connection.recv(1 << 20)):
            pieces = [b"".join(pieces) + piece] if len(pieces) > 100 else pieces + [piece]
        try:
            return head, json.loads(b"".join(pieces))
        except ValueError:
            return head, b"".join(pieces)

    def said(self, report):
        """The bodies of one report."""
        return [body for body in self.bodies if isinstance(body, dict) and body.get("status") == report]

    def wait(self, count, seconds=30):
        """Waits until so many requests came; returns whether they did."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.bodies) >= count, seconds)

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
