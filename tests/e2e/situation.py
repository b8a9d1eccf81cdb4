# SPDX-License-Identifier: Apache-2.0
"""Runs a command where the outside is missing, in one of the ways that it can be:

    situation.py NAME COMMAND [ARGUMENT...]

    no_network       a network namespace whose loopback is down
    no_such_name     the loopback, and a name server that knows no name
    proxy_refuses    the loopback, and a tinyproxy that forbids every host

Root makes the namespaces, and the command runs as SITUATION_USER (a uid) where that is set;
an ordinary user makes them in a user namespace of its own, and the command runs as that user. Exit status: the command's, or 77
where namespaces cannot be had.
"""
import ctypes
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from servers import tinyproxy  # noqa: E402

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
libc = ctypes.CDLL(None, use_errno=True)


def call(function, *arguments):
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter():
    """Leaves for namespaces of its own."""
    uid, gid = os.geteuid(), os.getegid()
    call(libc.unshare, CLONE_NEWNET | CLONE_NEWNS | (0 if uid == 0 else CLONE_NEWUSER))
    if uid != 0:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    call(libc.mount, b"none", b"/", None, MS_REC | MS_PRIVATE, None)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def cover(path, text, directory):
    """Puts a text over a file of the system, for this namespace only."""
    source = pathlib.Path(directory) / path.replace("/", "_")
    source.write_text(text)
    source.chmod(0o644)
    call(libc.mount, str(source).encode(), os.path.realpath(path).encode(), None, MS_BIND, None)


def know_no_name():
    """A name server that answers every question with: no such name."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))

    def answer():
        while True:
            question, sender = server.recvfrom(4096)
            server.sendto(question[:2] + b"\x81\x83\x00\x01" + b"\x00" * 6 + question[12:].split(b"\0", 1)[0] + b"\0"
                          + question[12:].split(b"\0", 1)[1][:4], sender)
    threading.Thread(target=answer, daemon=True).start()


def prepare(name, directory):
    """Makes the situation; returns variables for the command, and the proxy."""
    server = "192.0.2.53" if name == "no_network" else "127.0.0.1"
    cover("/etc/resolv.conf", f"nameserver {server}\noptions timeout:1 attempts:1\n", directory)
    if name != "no_network":
        loopback_up()
    if name == "no_such_name":
        know_no_name()
    if name != "proxy_refuses":
        return {}, None
    proxy = tinyproxy.Tinyproxy(allow="^nobody\\.invalid$")
    return {variable: proxy.url() for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}, proxy


def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def main():
    name, command = sys.argv[1], sys.argv[2:]
    user = os.environ.pop("SITUATION_USER", None)
    directory = tempfile.mkdtemp(prefix="sba-situation-")
    os.chmod(directory, 0o755)
    proxy = None
    try:
        try:
            enter()
            variables, proxy = prepare(name, directory)
        except (OSError, RuntimeError) as problem:
            print(f"situation: cannot be had: {problem}", file=sys.stderr)
            return 77
        child = subprocess.Popen(command, env={**os.environ, **variables}, preexec_fn=lambda: user and become(int(user)))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda signum, _: child.send_signal(signum))
        status = child.wait()
        return status if status >= 0 else 128 - status
    finally:
        if proxy:
            proxy.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
