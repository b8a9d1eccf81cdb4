# SPDX-License-Identifier: Apache-2.0
"""What a program of tests makes outside the checkout goes with it: its temporary files, and processes that use them."""
import atexit
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 20  # seconds until a process that was killed is gone
GRACE = 20  # seconds that one may take to end by itself: the machine may be busy


def named_by(pid):
    """What says to whom a process belongs: its working directory, its environment, its command line."""
    with contextlib.suppress(OSError):
        yield os.readlink(f"/proc/{pid}/cwd").encode()
    for name in ("environ", "cmdline"):
        with contextlib.suppress(OSError):
            yield pathlib.Path(f"/proc/{pid}/{name}").read_bytes()


def processes(directory):
    """The processes that name a path below the directory, zombies aside."""
    path, own = str(directory).encode(), str(os.getpid())
    return [int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
            if pid != own and any(path in words for words in named_by(pid))]


def end(directory, grace=0):
    """Kills those that do not end by themselves within a grace, in seconds. Gives their command lines."""
    until = time.monotonic() + grace
    while time.monotonic() < until and processes(directory):
        time.sleep(0.01)
    found, until = {}, time.monotonic() + PATIENCE
    while (alive := processes(directory)) and time.monotonic() < until:
        for pid in alive:
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.setdefault(pid, words)
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return list(found.values())


def remove(directory):
    """Whatever its modes, and however deep it is."""
    shutil.rmtree(directory, ignore_errors=True)
    if os.path.lexists(directory):
        subprocess.run(["chmod", "-R", "u+rwX", directory], stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", directory], stderr=subprocess.DEVNULL)


def place(case, prefix):
    """A directory for the tests of a class, which is removed after them, with the processes that name it."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
    directory.chmod(0o755)
    case.addClassCleanup(remove, directory)
    case.addClassCleanup(end, directory)
    return directory


# Everything is below one directory.
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="sba-tests-"))
ROOT.chmod(0o755)
tempfile.tempdir = str(ROOT)
_owner = os.getpid()


def is_gone(pid, started):
    """started: clock ticks since boot, as text."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19] != started
    except OSError:
        return True


def remove_reports():
    """The places of workers' reports that runners left which were killed."""
    space = str(os.stat("/proc/self/ns/pid").st_ino)
    for path in (one for place in ("/tmp", "/var/tmp") for one in pathlib.Path(place).glob("cynode-sba-*-*-*-*")):
        _, of, pid, started = path.name.removeprefix("cynode-sba-").split("-", 3)
        if of == space and is_gone(pid, started):
            remove(path)


@atexit.register
def remove_root():
    if os.getpid() == _owner:
        remove(ROOT)
        remove_reports()
