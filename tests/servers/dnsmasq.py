# SPDX-License-Identifier: Apache-2.0
"""A real dnsmasq on an address of the loopback of its own, a name server that never answers, and one that answers some
questions only. All want root: their port is 53."""
import contextlib
import random
import socket
import struct
import threading

from . import real


def is_there():
    return real.is_there("dnsmasq")


def free_address():
    return f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"


class Dnsmasq(real.RealServer):
    """Knows these names, as name -> addresses, and that there are no others."""

    def __init__(self, names):
        super().__init__()
        self.address = free_address()
        records = [f"--host-record={name},{address}" for name, addresses in names.items() for address in addresses]
        self.start(["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
                    "--local=/#/", "--user=root", "--pid-file", "--bind-interfaces",
                    f"--listen-address={self.address}", *records], 53, user=None, address=self.address)


class Silent(socket.socket):
    def __init__(self):
        super().__init__(socket.AF_INET, socket.SOCK_DGRAM)
        self.address = free_address()
        self.bind((self.address, 53))

    def is_asked(self):
        with contextlib.suppress(BlockingIOError):
            return bool(self.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK))


class Partial(Silent):
    """Says of names below .failing that it failed (SERVFAIL), of `name` that it is 127.0.0.1, leaves questions for its
    IPv6 address unanswered, and knows no other."""
    FAILED, UNKNOWN = 2, 3
    IPV6 = 28

    def __init__(self, name):
        super().__init__()
        self.name = name
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)  # wakes the thread
        super().close()

    def serve(self):
        with contextlib.suppress(OSError):
            question, asker = self.recvfrom(512)
            while question:
                answer = self.answer(question)
                if answer:
                    self.sendto(answer, asker)
                question, asker = self.recvfrom(512)

    def answer(self, question):
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        kind, = struct.unpack_from("!H", question, at + 1)
        is_it = ".".join(labels) == self.name
        if is_it and kind == self.IPV6:
            return None
        code = 0 if is_it else self.FAILED if labels[-1] == "failing" else self.UNKNOWN
        found = b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, 4) + bytes([127, 0, 0, 1]) if is_it else b""
        head = struct.pack("!HHHHH", 0x8180 | code, 1, int(is_it), 0, 0)
        return question[:2] + head + question[12:at + 5] + found
