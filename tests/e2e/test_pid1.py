# SPDX-License-Identifier: Apache-2.0
"""The runner as PID 1 of a container, as a session into which rounds come by exec, and as an ordinary process among
others, with and without a /proc of its own. Where /proc does not tell, what left its command's group lives on."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import sba
from process_case import (NO_ZOMBIES, ORPHANS, WITH_PROC, WITH_THE_PROC_OF_OTHERS, WITHOUT_PROC, ProcessCase,
                          has_namespaces)

ORPHAN = "sh -c 'trap \"\" TERM; sleep 600' </dev/null >/dev/null 2>&1 &"
ENTER = ["nsenter", *(["--root"] if sba.UID else ["--user", "--preserve-credentials"]), "--mount", "--pid"]


@unittest.skipUnless(has_namespaces(), "no PID namespace is to be had here")
class AsPid1(ProcessCase):
    wrapper = WITH_PROC

    def run_as_pid1(self, *steps, **fields):
        done = self.run_job(self.job(self.sh("echo $PPID"), *steps, **fields), wrapper=self.wrapper, **sba.AS_ROOT)
        self.assertTrue(done.result, f"no result: exit status {done.exit}, {done.stdout + done.stderr}")
        return done

    def output(self, done, index):
        return done.steps[index]["result"]["stdout"]

    def assert_gone(self):
        sba.wait_for(lambda: not self.left(), "the job's processes to end")

    def test_how_a_command_ended(self):
        for script, exit_status, field, value in (("exit 0", 0, "exit_code", 0), ("exit 7", 1, "exit_code", 7),
                                                  ("kill -SEGV $$", 1, "signal", "SIGSEGV")):
            done = self.run_as_pid1(self.sh(script))
            self.assertEqual((done.exit, self.output(done, 0), done.steps[1]["result"][field]),
                             (exit_status, "1\n", value), done.result)

    def test_timeout_ends_all(self):
        done = self.run_as_pid1(self.sh(ORPHANS + "; trap '' TERM; sleep 600"), max_runtime_seconds=1)
        self.assert_end(done, 124, "timeout")
        self.assert_gone()

    def test_adopted_zombies_are_reaped(self):
        done = self.run_as_pid1(self.sh(ORPHANS), self.sh(NO_ZOMBIES))
        self.assertEqual((done.exit, self.output(done, 2)), (0, "none\n"), done.result)
        self.assert_gone()

    def test_a_child_from_before_the_runner_is_reaped(self):
        # The image's own entrypoint may have started something and then become the runner.
        self.wrapper = [*self.wrapper, "sh", "-c", 'sleep 600 & true & exec "$@"', "sh"]
        done = self.run_as_pid1(self.sh(NO_ZOMBIES))
        self.assertEqual((done.exit, self.output(done, 1)), (0, "none\n"), done.result)

    def test_a_signal_cancels(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(signal=number.name):
                begun = self.workspace / "begun"
                begun.unlink(missing_ok=True)
                job = self.job(self.sh(ORPHANS + "; echo said; touch begun; sleep 600"))
                process = self.start(job, wrapper=self.wrapper, **sba.AS_ROOT)
                sba.wait_for(begun.exists, "the command to begin")
                os.kill(self.child_of(process.pid), number)
                done = self.assert_end(self.outcome_of(process), 128 + number, "cancelled")
                self.assertEqual(self.output(done, 0), "said\n")
                self.assert_gone()

    @staticmethod
    def child_of(pid):
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@unittest.skipIf(sba.IS_DEV, "AddressSanitizer wants /proc")
@unittest.skipUnless(sba.may(*WITHOUT_PROC, "true"), "nothing can be mounted over /proc here")
class AsPid1WithoutProc(AsPid1):
    """An image may lack /proc; nothing else changes."""
    wrapper = WITHOUT_PROC

    test_adopted_zombies_are_reaped = None  # these two look into /proc
    test_a_child_from_before_the_runner_is_reaped = None


class AsPid1WithTheProcOfOthers(AsPid1):
    """/proc may be that of another PID namespace, where every number means another process."""
    wrapper = WITH_THE_PROC_OF_OTHERS

    test_adopted_zombies_are_reaped = None
    test_a_child_from_before_the_runner_is_reaped = None


class AmongOthers(ProcessCase):
    def test_other_processes_of_the_user_live_on(self):
        job = self.job(self.sh(ORPHANS + "; trap '' TERM; sleep 600"), max_runtime_seconds=1)
        others = self.start_others()
        self.assertEqual(self.run_job(job).exit, 124)
        self.assertEqual([other.poll() for other in others], [None, None])


@unittest.skipUnless(sba.MAY_MOUNT, "nothing can be mounted here, and /proc not be taken away")
@unittest.skipIf(sba.IS_DEV, "AddressSanitizer wants /proc")
class WithoutProc(ProcessCase):
    wrapper = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *sba.AS_USER]

    def run_there(self, *steps, **fields):
        done = self.run_job(self.job(*steps, **fields), wrapper=self.wrapper, **sba.AS_ROOT)
        self.assertIsNotNone(done.result, done.stdout + done.stderr)
        return done

    def assert_gone(self):
        self.assertEqual(self.left(), [], "the runner had ended all before it ended")

    def test_commands_and_files(self):
        done = self.run_there(self.sh("ls /proc | wc -l; echo said"), self.write_file("a", "x"),
                              self.step("list_tree", path="."), self.sh("exit 7"))
        self.assertEqual((done.exit, done.code, done.steps[3]["exit_code"]), (1, "step_failed", 7), done.result)
        self.assertIn("said\n", done.steps[0]["output"])

    def test_what_a_command_left_is_ended_with_the_job(self):
        done = self.run_there(self.sh(ORPHAN + " echo started"))
        self.assertEqual((done.exit, done.steps[0]["output"]), (0, "started\n"), done.result)
        self.assert_gone()

    def test_the_deadline_ends_all(self):
        done = self.run_there(self.sh(ORPHAN + " echo said; trap '' TERM; sleep 600"), max_runtime_seconds=1)
        self.assert_end(done, 124, "timeout")
        self.assertEqual((done.status, done.steps[0]["result"]["stdout"]), ("timeout", "said\n"), done.result)
        self.assert_gone()

    def test_a_step_that_is_too_slow_ends_its_group_and_the_job_the_rest(self):
        self.assert_end(self.run_there(self.sh(ORPHAN + " sleep 600", timeout_seconds=1)), 124, "timeout")
        self.assert_gone()

    def test_a_cancel_ends_all(self):
        begun = self.workspace / "begun"
        process = self.start(self.job(self.sh(ORPHAN + " touch begun; sleep 600")), wrapper=self.wrapper, **sba.AS_ROOT)
        sba.wait_for(begun.exists, "the command to begin")
        process.terminate()
        self.assert_end(self.outcome_of(process), 143, "cancelled")
        self.assert_gone()


class WithTheProcOfOthers(WithoutProc):
    """Where /proc is that of another PID namespace, whose first process looks at its end whether it is alone."""
    wrapper = ["unshare", "--mount", "--pid", "--fork", "sh", "-c",
               '"$@"; code=$?; kill -0 -1 2>/dev/null && code=99; exit $code', "sh", *sba.AS_USER]

    test_a_cancel_ends_all = None  # the signal would go to unshare


@unittest.skipUnless(has_namespaces(), "no PID namespace is to be had here")
class Session(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        self.session = subprocess.Popen([*WITH_PROC, sba.BINARY, "--idle"], preexec_fn=sba.reset_signals,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first = None
        self.addCleanup(self.end)
        sba.wait_for(self.is_waiting, "the runner to wait")

    def end(self):
        """The first process must be killed itself: becoming another user, it no longer dies with its parent."""
        if self.session.poll() is None:
            os.kill(self.first or self.session.pid, signal.SIGKILL)
        self.session.communicate(timeout=60)

    def is_waiting(self):
        children = pathlib.Path(f"/proc/{self.session.pid}/task/{self.session.pid}/children").read_text().split()
        self.first = int(children[0]) if children else None
        return self.first and self.status("Name") == "sba" and self.status("SigCgt") != "0" * 16 and self.sleeps()

    def sleeps(self):
        return self.status("State").startswith("S")

    def status(self, name):
        for line in pathlib.Path(f"/proc/{self.first}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return line.split(":", 1)[1].strip()

    def enter(self, *command):
        return [*ENTER, "--target", str(self.first), *sba.AS_USER, *command]

    def start_round(self, job):
        process = subprocess.Popen(self.enter(sba.BINARY, "--stdin", "--workspace", str(self.workspace)),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, "TMPDIR": str(self.job_directory)})  # for its artifacts
        process.stdin.write(json.dumps(job).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def round(self, *scripts, **job):
        """A round of these scripts, or of another job: its exit status and result."""
        process = self.start_round(job or self.job(*(self.sh(script) for script in scripts)))
        stdout, stderr = process.communicate(timeout=120)
        for line in stderr.splitlines():
            json.loads(line)
        return process.returncode, json.loads(stdout)

    def shell(self, script):
        return subprocess.run(self.enter("sh", "-c", script), stdout=subprocess.PIPE, timeout=120, text=True).stdout

    def test_rounds_share_the_workspace_and_nothing_else(self):
        self.assertEqual(self.round("echo one >log; setsid sleep 600 & exit 0")[0], 0)
        status, result = self.round("echo two >>log; exit 4")
        self.assertEqual((status, result["failure_code"], result["steps"][0]["exit_code"]), (1, "step_failed", 4))
        status, result = self.round("cat log", "cat /proc/[0-9]*/comm | grep -c sleep || true")
        self.assertEqual((status, [step["output"] for step in result["steps"]]), (0, ["one\ntwo\n", "0\n"]))
        self.assertIsNone(self.session.poll())

    def test_a_refused_round_leaves_the_session(self):
        status, result = self.round(surprise=1)
        self.assertEqual((status, result["failure_code"]), (2, "schema_validation"))
        self.assertEqual(self.round("true")[0], 0)

    def test_what_others_leave_behind_is_reaped(self):
        self.shell(f"{{ {ORPHANS} }} >/dev/null")
        self.assertEqual(self.shell(NO_ZOMBIES), "none\n")

    def test_a_killed_round_leaves_the_session(self):
        process = self.start_round(self.job(self.sh("touch begun; setsid sleep 600 & sleep 600")))
        sba.wait_for((self.workspace / "begun").exists, "the round to begin")
        # In here the first process cannot be killed, so this means the round's.
        self.shell("pkill -KILL -x sba")
        stdout, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, stdout), (-signal.SIGKILL, b""))
        self.assertEqual(self.shell(NO_ZOMBIES), "none\n")
        # A second round lives beside the next ones: what belongs to it stays.
        beside = self.start_round(self.job(self.sh("touch second; setsid sleep 601 & sleep 602")))
        sba.wait_for((self.workspace / "second").exists, "the second round to begin")
        status, result = self.round("pgrep -a sleep")
        self.assertEqual((status, "sleep 600" in result["steps"][0]["output"]), (0, False), result)
        self.assertIn("sleep 602", result["steps"][0]["output"])
        self.shell("pkill -KILL -x sleep")
        beside.communicate(timeout=60)

    def test_waiting_takes_no_time(self):
        def awake():
            return self.status("voluntary_ctxt_switches"), self.status("nonvoluntary_ctxt_switches")
        sba.wait_for(self.sleeps, "the runner to sleep")
        before = awake()
        time.sleep(1)  # the longer, the sooner a runner that polls is found out; one that sleeps passes in any case
        self.assertEqual(awake(), before)

    def test_other_signals_do_nothing(self):
        for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGRTMAX):
            os.kill(self.first, number)
        self.assertEqual(self.round("echo on")[0], 0)
        self.assertIsNone(self.session.poll())

    def test_sigterm_ends_it_and_all_that_runs_in_it(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(signal=number.name):
                stubborn = subprocess.Popen(self.enter("sh", "-c",
                                                       "trap '' TERM INT; echo ready; sleep 600 & wait; wait"),
                                            stdout=subprocess.PIPE)
                self.addCleanup(stubborn.communicate)
                self.assertEqual(stubborn.stdout.readline(), b"ready\n")
                os.kill(self.first, number)
                self.assertEqual(self.session.wait(timeout=60), status)
                self.assertNotEqual(stubborn.wait(timeout=60), 0)
                self.doCleanups()
                self.setUp()


sba.main(__name__)
