# SPDX-License-Identifier: Apache-2.0
"""A real dnsmasq on an address of the loopback of its own, and a name server that never answers. Both want root: their
port is 53."""
import contextlib
import random
import socket

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
