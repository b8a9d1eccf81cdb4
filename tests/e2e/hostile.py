# SPDX-License-Identifier: Apache-2.0
"""Commands that misbehave, started as `python3 hostile.py NAME [ARGUMENT]` by the tests of hostile commands."""
import os
import signal
import subprocess
import sys
import time

FOREVER = 600  # seconds; longer than any test waits


def daemon():
    """Double fork, a session of its own, SIGTERM ignored, /dev/null on all descriptors; then stays."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.chdir("/")
            for fd in (0, 1, 2):
                os.dup2(os.open("/dev/null", os.O_RDWR), fd)
            time.sleep(FOREVER)
        os._exit(0)
    os.wait()


def daemon_with_stdout():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for _ in range(FOREVER * 100):
                os.write(1, b"still here\n")
                time.sleep(0.01)
        os._exit(0)
    os.wait()
    print("said", flush=True)


def bomb():
    """What cannot be forked is tried again. The test bounds it with RLIMIT_NPROC, and an alarm
    ends what a failed test leaves."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.alarm(100)
    print("begun", flush=True)
    while True:
        try:
            if os.fork() == 0:
                signal.alarm(100)
                os.setsid()
        except OSError:
            time.sleep(0.02)


def zombies(count):
    for _ in range(int(count)):
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.wait()
    print("done", flush=True)


def chain(count):
    """Each process ends as soon as it has started the next; the last one stays."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(int(count)):
        if os.fork():
            os._exit(0)
        os.setsid()
    open("reached", "w").close()
    time.sleep(FOREVER)


def ladder(count, how="sleep"):
    """A chain in which every process stays, asleep or, once all are there, busy: a deep tree."""
    def stay():
        while how == "spin" and not os.path.exists("reached"):
            time.sleep(0.05)
        while how == "spin":
            pass
        time.sleep(FOREVER)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(int(count)):
        if os.fork():
            stay()
        signal.alarm(100)
        os.setsid()
    open("reached", "w").close()
    stay()


def crowd(count):
    def told(*_):
        os.write(1, b"told\n")
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready = os.pipe()
    for _ in range(int(count)):
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, told)
            os.write(ready[1], b".")
            time.sleep(FOREVER)
        os.read(ready[0], 1)
    open("reached", "w").close()
    for _ in range(int(count)):
        os.wait()


def own_subreaper():
    """Adopts its own orphans (PR_SET_CHILD_SUBREAPER) and lets them ignore SIGTERM."""
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    daemon()
    open("reached", "w").close()
    time.sleep(FOREVER)


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)


def blocked():
    """Blocks every signal there is and starts a child by vfork, which inherits that."""
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    subprocess.Popen(["sleep", str(FOREVER)])
    open("reached", "w").close()
    time.sleep(FOREVER)


def deaf(seconds):
    print("said", flush=True)
    os.close(1)
    os.close(2)
    time.sleep(float(seconds))


def print_much(size):
    block = b"0123456789abcde\n" * 65536
    for _ in range(int(size) // len(block)):
        os.write(1, block)


def thief():
    """Takes what the runner should get."""
    pipe = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    for _ in range(2000):
        os.write(1, b"x" * 100)
        try:
            os.read(pipe, 1000)
        except BlockingIOError:
            pass  # the runner was first
    os.write(1, b"end\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
