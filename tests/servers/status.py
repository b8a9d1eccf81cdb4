# SPDX-License-Identifier: Apache-2.0
"""A status server that answers as a test tells it, and keeps what it was sent.

Server(answers) takes one answer a request, the last for all that follow: a status, (status, headers), or a function of
the connection, which is handed over as it is. The body that came is in .received, and decoded where it is JSON in
.bodies. With begin=False nothing listens before start().
"""
import json
import threading

from . import listener


def hang(connection):
    while connection.recv(65536):
        pass


def drop(connection):
    """Closes without a word."""


def drip(connection):
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


def decoded(body):
    try:
        return json.loads(body)
    except ValueError:
        return body


class Server(listener.Listener):
    def __init__(self, *answers, address=("127.0.0.1", 0), begin=True):
        self.answers = list(answers) or [204]
        self.received, self.bodies, self.heads, self.arrived = [], [], [], threading.Condition()
        super().__init__(address, begin)
        self.url += "/status"

    def serve(self, connection):
        while (request := listener.read_request(connection)) and self.answer(connection, *request):
            pass

    def answer(self, connection, head, body):
        """Returns whether the connection goes on."""
        with self.arrived:
            self.heads.append(head.decode())
            self.received.append(body)
            self.bodies.append(decoded(body))
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

    def said(self, report):
        return [body for body in self.bodies if isinstance(body, dict) and body.get("status") == report]

    def wait(self, count, seconds=30):
        """Waits until so many requests came; returns whether they did."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.bodies) >= count, seconds)
