# SPDX-License-Identifier: Apache-2.0
"""The end by exec: whatever crashes, and whatever a command did to the runner's files, the result is complete, and nothing lives on."""
import ctypes
import os
import signal
import unittest

import sba
from sba import SandboxCase

LIBC = ctypes.CDLL(None, use_errno=True)


def threads_of(pid):
    return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))


def is_gone(pid):
    """A zombie that nobody has reaped yet runs no more."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class CrashCase(SandboxCase):
    """A job of three steps: the second says its PID and waits."""
    environment = {"SBA_CONFINE": "off"}

    def three_steps(self, before="true", **fields):
        waiting = f"{before}; sleep 600 & echo $! >child; echo $$ >pid; wait"
        return self.job(self.sh("echo one"), self.sh(waiting), self.sh("touch never"), **fields)

    def running(self):
        path = self.workspace / "pid"
        return path.exists() and path.read_text().endswith("\n")

    def crash(self, job, *more, send=lambda process: process.send_signal(signal.SIGSEGV), **options):
        process = self.start(job, *more, **options)
        sba.wait_for(self.running, "the second step")
        send(process)
        return self.outcome_of(process)

    def assert_crashed(self, done, job_id="job-1"):
        self.assertIsNotNone(done.result, done.stderr)
        sba.result_validator().validate(done.result)
        self.assertEqual((done.exit, done.code, done.result["job_id"]), (1, "internal_error", job_id), done.stderr)
        self.assertEqual(done.statuses, ["success", "failure", "skipped"])
        for name in ("pid", "child"):
            sba.wait_for(lambda name=name: is_gone(int(self.text(name))), f"the end of {name}")
        self.assertFalse((self.workspace / "never").exists())


class Crash(CrashCase):
    def send_to_thread(self, process, number_of_thread):
        threads = threads_of(process.pid)
        self.assertGreater(len(threads), number_of_thread)
        if LIBC.syscall(ctypes.c_long({"x86_64": 234, "aarch64": 131}[os.uname().machine]), process.pid, threads[number_of_thread],
                        int(signal.SIGSEGV)) != 0:
            raise OSError(ctypes.get_errno(), "tgkill")

    def test_in_each_thread(self):
        """The main thread, the timer's, and the two launchers."""
        for number in range(4):
            with self.subTest(thread=number):
                for name in ("pid", "child"):
                    (self.workspace / name).unlink(missing_ok=True)
                self.assert_crashed(self.crash(self.three_steps(), send=lambda process, n=number: self.send_to_thread(process, n)))

    def test_ids_longer_than_a_variable_may_be(self):
        job_id = "j" * 131000  # an argument or a variable has at most 128 KiB
        self.assert_crashed(self.crash({**self.three_steps(), "job_id": job_id}), job_id)

    def test_a_journal_that_nobody_may_open_any_more(self):
        self.assert_crashed(self.crash(self.three_steps(f"chmod 0 {self.journal_file}")))

    def test_many_crash_signals_at_once(self):
        """Those that come after the first do not end the new image."""
        def send(process):
            for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGSEGV, signal.SIGILL):
                process.send_signal(number)
        self.assert_crashed(self.crash(self.three_steps(), send=send))

    @unittest.skipUnless(sba.MAY_MOUNT, "nothing can be mounted here")
    def test_without_proc(self):
        self.assert_crashed(self.crash(self.three_steps(), **self.in_namespace("umount -l /proc")))


if __name__ == "__main__":
    sba.main()
