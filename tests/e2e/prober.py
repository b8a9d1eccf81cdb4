# SPDX-License-Identifier: Apache-2.0
"""prober.py [PID]: tries to look into a process (default: the parent) in every way that a process of the same user has.

Prints JSON: for each way "allowed" or the errno that refused it; and what this process itself was given.
"""
import ctypes
import errno
import json
import os
import sys

PTRACE_ATTACH, PTRACE_DETACH, PTRACE_SEIZE = 16, 17, 0x4206
PIDFD_OPEN, PIDFD_GETFD, KCMP = 434, 438, {"x86_64": 312, "aarch64": 272}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)


def call(function, *arguments):
    """The function's value; OSError where it is -1."""
    function.restype = ctypes.c_long
    value = function(*[ctypes.c_void_p(each) if isinstance(each, int) else each for each in arguments])
    if value == -1:
        raise OSError(ctypes.get_errno(), "")
    return value


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def trace(request, pid):
    call(libc.ptrace, request, pid, 0, 0)
    os.waitpid(pid, 0x40000000) if request == PTRACE_ATTACH else None  # __WALL: it is no child of ours
    libc.ptrace(PTRACE_DETACH, pid, 0, 0)


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def touch_memory(function, pid):
    ours = ctypes.create_string_buffer(1)
    local = IoVec(ctypes.addressof(ours), 1)
    try:
        call(function, pid, ctypes.byref(local), 1, ctypes.byref(IoVec(1, 1)), 1, 0)
    except OSError as error:
        if error.errno != errno.EFAULT:  # nothing stands at address 1, but we were let in
            raise


def take_descriptor(pid):
    handle = call(libc.syscall, PIDFD_OPEN, pid, 0)
    call(libc.syscall, PIDFD_GETFD, handle, 1, 0)


WAYS = {
    "environ": lambda pid: read(f"/proc/{pid}/environ"),
    "mem": lambda pid: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)),
    "maps": lambda pid: read(f"/proc/{pid}/maps"),
    "auxv": lambda pid: read(f"/proc/{pid}/auxv"),
    "exe": lambda pid: os.readlink(f"/proc/{pid}/exe"),
    "cwd": lambda pid: os.listdir(f"/proc/{pid}/cwd/"),
    "root": lambda pid: os.listdir(f"/proc/{pid}/root/"),
    "fd": lambda pid: os.listdir(f"/proc/{pid}/fd"),
    "ptrace_attach": lambda pid: trace(PTRACE_ATTACH, pid),
    "ptrace_seize": lambda pid: trace(PTRACE_SEIZE, pid),
    "pidfd_getfd": take_descriptor,
    "process_vm_readv": lambda pid: touch_memory(libc.process_vm_readv, pid),
    "process_vm_writev": lambda pid: touch_memory(libc.process_vm_writev, pid),
    "kcmp": lambda pid: call(libc.syscall, KCMP, pid, os.getpid(), 1, 0, 0),
}


def attempt(way, pid):
    try:
        way(pid)
        return "allowed"
    except OSError as error:
        return errno.errorcode[error.errno]


def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False


def main():
    descriptors = [fd for fd in range(4096) if is_open(fd)]
    pid = int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid()
    with open("/proc/self/status") as status:
        own = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
    with open(f"/proc/{pid}/comm") as comm:
        target = comm.read().strip()
    print(json.dumps({"target": target, "ways": {name: attempt(way, pid) for name, way in WAYS.items()},
                      "descriptors": descriptors, "no_new_privs": own["NoNewPrivs"],
                      "session": os.getsid(0) == os.getpid(), "environment": dict(os.environ)}))


main()
