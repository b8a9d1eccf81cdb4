# SPDX-License-Identifier: Apache-2.0
"""The end by exec: whatever crashes, and whatever a command did to the runner's files, the result is complete, and
nothing lives on."""
import ctypes
import json
import os
import signal
import subprocess
import threading
import unittest

import sba
from agent_case import AgentCase, call, calls
from sba import SandboxCase
from servers import status

LIBC = ctypes.CDLL(None, use_errno=True)


def threads_of(pid):
    return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return int(children.read().split()[0])


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
        tgkill = ctypes.c_long({"x86_64": 234, "aarch64": 131}[os.uname().machine])
        if LIBC.syscall(tgkill, process.pid, threads[number_of_thread], int(signal.SIGSEGV)) != 0:
            raise OSError(ctypes.get_errno(), "tgkill")

    def test_in_each_thread(self):
        # The main thread, the timer's, and the two launchers.
        for number in range(4):
            with self.subTest(thread=number):
                for name in ("pid", "child"):
                    (self.workspace / name).unlink(missing_ok=True)

                def send(process, number=number):
                    self.send_to_thread(process, number)
                self.assert_crashed(self.crash(self.three_steps(), send=send))

    def test_ids_longer_than_a_variable_may_be(self):
        job_id = "j" * 131000  # an argument or a variable has at most 128 KiB
        self.assert_crashed(self.crash({**self.three_steps(), "job_id": job_id}), job_id)

    def test_a_journal_that_nobody_may_open_any_more(self):
        self.assert_crashed(self.crash(self.three_steps(f"chmod 0 {self.journal_file}")))

    def test_a_job_directory_that_nobody_may_enter_any_more(self):
        self.addCleanup(self.job_directory.chmod, 0o755)
        self.assert_crashed(self.crash(self.three_steps(f"chmod 0 {self.job_directory}")))

    @sba.wants("strace")
    def test_without_memfd(self):
        self.assert_crashed(self.crash(self.three_steps(), wrapper=sba.injecting("memfd_create", "error=EPERM"),
                                       send=lambda process: os.kill(child_of(process.pid), signal.SIGSEGV)))

    @unittest.skipIf(sba.IS_DEV, "the sanitizers have handlers of their own")
    def test_many_crash_signals_at_once(self):
        # Those that come after the first do not end the new image.
        def send(process):
            for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGSEGV, signal.SIGILL):
                process.send_signal(number)
        self.assert_crashed(self.crash(self.three_steps(), send=send))

    def temporary_files(self):
        return [name for name in os.listdir(self.workspace) if name.startswith(".sba-")]

    def test_while_a_patch_is_staged(self):
        # All or nothing of it is there, and no temporary file; a command's own of such a name stays.
        count, own = 2000, ".sba-12345678"
        self.put(own)
        patch = "".join(f"--- /dev/null\n+++ b/new{i}\n@@ -0,0 +1 @@\n+x\n" for i in range(count))
        job = self.job(self.apply_diff(patch), self.sh("test -e good"))
        done = self.run_and_signal(job, signal.SIGSEGV, lambda: len(os.listdir(self.workspace)) > 2, "a new file")
        self.assertIn(done.code, ("internal_error", "step_failed"), done.stderr)
        self.assertEqual(self.temporary_files(), [own])
        self.assertIn(len(os.listdir(self.workspace)), (1, 1 + count))
        self.put("good")
        done = self.run_job(job, "--resume")
        files = self.temporary_files(), len(os.listdir(self.workspace))
        self.assertEqual((done.exit, files), (0, ([own], 2 + count)), done.stderr)

    @unittest.skipUnless(sba.MAY_MOUNT and not sba.IS_DEV, "nothing can be mounted here, or the sanitizers want /proc")
    def test_without_proc(self):
        self.assert_crashed(self.crash(self.three_steps(), **self.in_namespace("umount -l /proc")))


class Standing(AgentCase):
    """A result that stands is never replaced by one that knows less."""

    def two_steps(self, **fields):
        return self.job(self.sh("echo one"), self.sh("test -e good"), self.sh("echo three"), **fields)

    def failed(self):
        """A run whose second step failed. Returns its result."""
        done = self.run_job(self.two_steps())
        self.assertEqual(done.statuses, ["success", "failure", "skipped"])
        return done.result_bytes

    def stopped_while_reading(self, *more, number, **options):
        """A run that has not read its job yet when the signal comes."""
        process = self.start(self.two_steps(), "--job", "-", *more, stdin=subprocess.PIPE, **options)
        sba.wait_for(lambda: len(threads_of(process.pid)) == 2, "the watch over the end")
        process.send_signal(number)
        process.wait(60)
        return process.returncode, [json.loads(line) for line in process.communicate()[1].splitlines()]

    def assert_goes_on(self):
        self.put("good")
        done = self.run_job(self.two_steps(), "--resume")
        self.assertEqual((done.exit, done.statuses), (0, ["success"] * 3), done.stderr)

    def test_a_resumed_run_that_ends_before_it_has_read_the_journal(self):
        for number, exit_status in ((signal.SIGSEGV, 1), (signal.SIGTERM, 143)):
            before = self.failed()
            code, log = self.stopped_while_reading("--resume", number=number)
            self.assertEqual((code, self.result_path.read_bytes()), (exit_status, before))
            self.assertIn("result.kept", [line["event"] for line in log])
        self.assert_goes_on()

    @unittest.skipIf(sba.IS_DEV, "the sanitizers report it")
    @sba.wants("strace")
    def test_a_resumed_run_that_crashes_as_its_first_result_takes_its_place(self):
        self.failed()
        crashing = sba.injecting("renameat,renameat2", "signal=SIGSEGV:when=1")
        done = self.run_job(self.two_steps(), "--resume", wrapper=crashing)
        self.assertEqual((done.exit, done.code), (1, "internal_error"), done.stderr)
        self.assertEqual(done.statuses[0], "success")
        self.assert_goes_on()

    def test_a_resumed_run_that_is_refused(self):
        before = self.failed()
        done = self.run_job("{", "--resume")
        self.assertEqual((done.exit, done.result_bytes), (2, before))
        self.assert_goes_on()

    @sba.wants("strace")
    def test_a_disk_that_does_not_read(self):
        # An error is never taken for the end of the journal.
        for number in range(1, 6):
            with self.subTest(number=number):
                before = self.failed(), self.journal_file.read_bytes()
                failing = sba.injecting("pread64", f"error=EIO:when={number}")
                done = self.run_job(self.two_steps(), "--resume", wrapper=failing)
                if done.exit == 2:
                    self.assertEqual((done.result_bytes, self.journal_file.read_bytes()), before)
                self.assertEqual(done.statuses[0], "success")
                self.assert_goes_on()
                (self.workspace / "good").unlink()

    def test_a_new_run_that_crashes_before_it_has_read_its_job(self):
        before = self.failed()
        self.stopped_while_reading(number=signal.SIGSEGV)
        self.assertEqual(self.result_path.read_bytes(), before, "perhaps it is this job's")
        self.stopped_while_reading(number=signal.SIGSEGV, env={"CYNODE_JOB_ID": "another"})
        result = json.loads(self.result_path.read_bytes())
        self.assertEqual((result["job_id"], result["failure_code"]), ("another", "internal_error"))

    def test_the_first_result_of_a_resumed_agent(self):
        writes = calls(("write_file", {"path": "a", "content": "x"}))
        first = self.server(writes, call("finish", answer="no", status="failed", acceptance=[]))
        done = self.run_agent(first)
        self.assertEqual((done.code, done.statuses), ("agent_gave_up", ["success"]))
        told, go_on = threading.Event(), threading.Event()
        reports = self.closing(status.Server(lambda connection: (told.set(), go_on.wait(60))))
        self.addCleanup(go_on.set)
        env = {"OLLAMA_BASE_URL": first.url, "SBA_JOB_STATUS_URL": reports.url}
        process = self.start(self.agent_job(), "--resume", env=env)
        self.assertTrue(told.wait(60))
        process.kill()
        done = self.outcome_of(process)
        self.assertEqual((done.code, done.statuses), ("interrupted", ["success"]))

    def test_a_job_whose_first_result_could_not_be_written(self):
        # It can be resumed, which means to begin it.
        self.result_path.mkdir()
        self.assertEqual(self.run_job(self.two_steps()).exit, 3)
        self.assertEqual(self.journal(), [])
        self.result_path.rmdir()
        self.assert_goes_on()


sba.main(__name__)
