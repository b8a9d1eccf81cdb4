# SPDX-License-Identifier: Apache-2.0
"""What tests of processes share: namespaces, orphans, commands that misbehave, and what of a job is still alive."""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import threading
import time
import uuid

import sba

LIBC = ctypes.CDLL(None, use_errno=True)
PYTHON = "/usr/bin/python3"  # Debian's: any user may run it
HOSTILE = pathlib.Path(__file__).parent / "hostile.py"
# A process that starts orphans in sessions of their own: some end at once (zombies for whoever adopts them), one stays.
ORPHANS = "for i in 1 2 3 4 5 6 7 8; do (setsid true &) ; done; (setsid sleep 600 &)"
# Prints the states of all processes but of this shell and its children; in a PID namespace, of the job's alone.
NO_ZOMBIES = """
n=0
while grep -q '^State:.*zombie' /proc/[0-9]*/status 2>/dev/null; do
    n=$((n + 1)); [ $n -lt 200 ] || { echo zombies; exit 1; }; sleep 0.05
done
echo none"""

NAMESPACE = ["unshare", "--mount"] if sba.UID else ["unshare", "--user", "--map-current-user", "--mount"]
# Commands before the runner that make it PID 1, with /proc of its own, that of another PID namespace, and none.
WITH_PROC = [*NAMESPACE, "--pid", "--fork", "--mount-proc", *sba.AS_USER]
WITH_THE_PROC_OF_OTHERS = [*NAMESPACE, "--pid", "--fork", *sba.AS_USER]
WITHOUT_PROC = [*NAMESPACE, "--pid", "--fork", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *sba.AS_USER]


def has_namespaces():
    return sba.may(*NAMESPACE, "--pid", "--fork", "--mount-proc", "true")


class Holder(threading.Thread):
    """Traces a process so that SIGKILL does not end it, until release()."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.released, self.tried, self.holds = pid, threading.Event(), threading.Event(), False
        self.start()
        self.tried.wait()

    def run(self):
        seize, traceexit = 0x4206, 0x40
        LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        LIBC.ptrace.restype = ctypes.c_long
        self.holds = LIBC.ptrace(seize, self.pid, None, traceexit) == 0
        self.tried.set()
        self.released.wait()  # the kernel lets go what an ended thread traced

    def release(self):
        self.released.set()
        self.join()


def hold(case, process, pid):
    """Holds a process that the runner has started; skips the test where that cannot be."""
    holder = Holder(pid)
    case.addCleanup(holder.release)
    if not holder.holds:
        process.kill()
        process.communicate()
        case.skipTest("nothing can be traced here")
    return holder


class ProcessCase(sba.SandboxCase):
    def left(self):
        """The processes that have the workspace as their working directory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/cwd").startswith(str(self.workspace)):
                    found.append(pid)
        return found

    def start_others(self):
        """Two children of the test: one in the runner's process group, one in another session."""
        others = [subprocess.Popen(["sleep", "600"], start_new_session=session, **sba.ordinary_user())
                  for session in (False, True)]
        for other in others:
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
        return others


class HostileCase(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        self.environment = {"SBA_TEST_MARK": str(uuid.uuid4())}
        self.mark = "=".join(*self.environment.items())
        self.addCleanup(self.kill_marked)
        self.put("hostile.py", HOSTILE.read_bytes())

    @staticmethod
    def all_processes(name):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                yield int(pid), pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                pass  # gone, or somebody else's

    def marked(self):
        """The processes, zombies aside, that have inherited this test's mark."""
        return [pid for pid, environ in self.all_processes("environ") if self.mark.encode() in environ.split(b"\0")]

    def kill_marked(self):
        """For a test that failed: stops all first, so that nothing forks away."""
        for number in (19, 19, 19, 9):
            for pid in self.marked():
                try:
                    os.kill(pid, number)
                except OSError:
                    pass

    def zombies(self, parent):
        return sum(stat.rsplit(b")", 1)[1].split()[:2] == [b"Z", b"%d" % parent]
                   for _, stat in self.all_processes("stat"))

    def hostile(self, name, *arguments, **more):
        return self.step("run_command", argv=[PYTHON, "hostile.py", name, *map(str, arguments)], **more)

    def run_hostile(self, *steps, limits=(), **fields):
        begun = time.monotonic()
        done = self.run_steps(*steps, **fields, wrapper=["prlimit", *limits] if limits else [])
        done.seconds = time.monotonic() - begun
        self.assertEqual(self.marked(), [], "processes of the job are alive")
        return done

    def run_to_sigterm(self, step):
        """Ends the job when the step has made the file `reached`."""
        done = self.run_and_signal(self.job(step), signal.SIGTERM, (self.workspace / "reached").exists, "the step")
        self.assertEqual((done.exit, self.marked()), (143, []), done.result)
        return self.first(done)["result"]["stdout"]

    def first(self, done):
        return done.steps[0]
