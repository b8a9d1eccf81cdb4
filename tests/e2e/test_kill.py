# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the runner at hundreds of moments: at every one the result path holds a whole, valid result of this job
(or, before the job is accepted, what was there before), and --resume brings the job to the result it would have had.

The moments are counted in system calls, not in time: strace kills the runner at its Nth call of each kind.
"""
import json
import os
import signal
import subprocess
import sys
import unittest

import sba
from sba import SandboxCase
from servers import status

# Every call with which the result, the journal, the todo list and the log change; then others, for moments in between.
CALLS = ["write", "writev", "pwritev2", "fsync", "fchmod", "rename", "renameat", "renameat2", "unlinkat", "ftruncate",
         "fallocate", "mkdir"]
OTHER_CALLS = ["clone", "clone3", "vfork", "openat2", "splice", "waitid", "wait4", "pread64", "close", "fstat",
               "newfstatat", "poll", "read", "mmap", "futex", "fcntl"]
MOMENTS = 200
MOST_OF_ANOTHER_CALL = 25


class KillTest(SandboxCase):
    def setUp(self):
        super().setUp()
        self.the_job = self.job(self.write_file("a", "x" * 30000), self.sh("cat a; echo end"), self.read_file("a"),
                                self.sh("printf kept > $CYNODE_ARTIFACTS_DIR/kept"), self.sh("exit 3"), self.sh("true"))
        outcome = self.run_job(self.the_job)
        self.assertEqual(outcome.exit, 1)
        self.expected = sba.without_times(outcome.result)

    def check(self, moment):
        """What must hold after a kill; then goes on with the job."""
        events = [line["event"] for line in self.journal()]
        if self.result_path.exists():
            result = json.loads(self.result_path.read_text())
            sba.result_validator().validate(result)
            self.assertEqual(result["job_id"], "job-1", moment)
            done = [step for step in result["steps"] if step["status"] != "skipped"]
            self.assertLessEqual(len(done), events.count("step.finished"), moment)
            self.assertIn(result["failure_code"], ("interrupted", "step_failed"), moment)
        else:
            self.assertNotIn("step.started", events, moment)
        outcome = self.run_job(self.the_job, "--resume")
        self.assertEqual(outcome.exit, 1, (moment, outcome.stdout, outcome.stderr))
        self.assertEqual(sba.without_times(outcome.result), self.expected, moment)
        left = sorted(os.listdir(self.job_directory))
        self.assertEqual(left, ["artifacts", "job.json", "journal.jsonl", "result.json", "todo.json"], moment)

    def kill_at(self, call, count):
        """False where it had fewer such calls."""
        self.clean()
        status = self.run_job(self.the_job, wrapper=sba.injecting(call, f"signal=SIGKILL:when={count}")).exit
        if status == 1:
            return False
        self.assertIn(status, (-9, 137), call)
        self.check((call, count))
        return True

    @sba.wants("strace")
    def test_at_each_system_call_of_the_result(self):
        moments = 0
        for call in CALLS + OTHER_CALLS:
            count = 0
            while (call in CALLS or count < MOST_OF_ANOTHER_CALL) and self.kill_at(call, count + 1):
                count += 1
            moments += count
        print(f"killed at {moments} moments", file=sys.stderr)
        self.assertGreaterEqual(moments, MOMENTS)

    @sba.wants("strace")
    def test_an_earlier_runs_journal_is_gone_before_the_first_result_stands(self):
        # Else a resumed run would take for its own what an earlier one did.
        self.clean()
        job = self.job(self.sh("echo x >> count"))
        self.assertEqual(self.run_job(job).exit, 0)
        killed = self.run_job(job, wrapper=sba.injecting("renameat", "signal=SIGKILL:when=2"))
        self.assertEqual((killed.code, self.run_job(job, "--resume").exit), ("interrupted", 0))
        self.assertEqual(self.text("count"), "x\nx\n")

    def test_the_older_result_stands_until_the_job_is_accepted(self):
        self.clean()
        process = self.start(self.the_job, "--job", "-", stdin=subprocess.PIPE)
        self.result_path.write_text("older")
        process.kill()
        process.communicate()
        self.assertEqual(self.result_path.read_text(), "older")


class Crash(SandboxCase):
    """The runner crashes, or is refused memory: it executes itself, and the result is complete."""
    environment = {"SBA_CONFINE": "off"}

    def check(self, outcome, steps, words="the runner crashed"):
        result = outcome.result or json.loads(outcome.stdout)
        sba.result_validator().validate(result)
        ended = outcome.exit, result["status"], result["failure_code"], result["job_id"]
        self.assertEqual(ended, (1, "failure", "internal_error", "job-1"), outcome.stderr)
        self.assertIn(words, result["failure_message"])
        self.assertEqual([step["status"] for step in result["steps"]], ["success"] * steps + ["failure", "skipped"])
        self.assertEqual(outcome.log[-1]["event"], "watchdog.ended")
        return result

    def crashing(self):
        """Leaves a daemon, and crashes the runner in the third step."""
        daemon = "setsid sleep 600 & echo $! > daemon; echo said; echo kept > $CYNODE_ARTIFACTS_DIR/kept"
        return self.job(self.sh("true"), self.sh(daemon), self.sh("touch begun; sleep 600"), self.sh("true"),
                        context={"acceptance_criteria": ["c"]})

    def in_third_step(self):
        return (self.workspace / "begun").exists() and len(json.loads(self.result_path.read_text())["steps"]) == 2

    def test_by_a_signal(self):
        for name in ("SEGV", "ABRT", "BUS", "ILL", "FPE", "TRAP", "SYS"):
            number = signal.Signals[f"SIG{name}"]
            outcome = self.run_and_signal(self.crashing(), number, self.in_third_step, "the third step")
            result = self.check(outcome, 2)
            self.assertEqual(result["steps"][1]["output"], "said\n")
            self.assertEqual([artifact["path"] for artifact in result["artifacts"]], ["kept"])
            self.assertEqual((result["todo"]["done"], result["acceptance"][0]["met"]), (2, None))
            self.assertRaises(ProcessLookupError, os.kill, int(self.text("daemon")), 0)
            (self.workspace / "begun").unlink()

    def test_with_the_result_on_stdout_and_a_server_to_tell(self):
        server = self.closing(status.Server(204))
        process = self.start(self.crashing(), "--result", "-", env={"SBA_JOB_STATUS_URL": server.url})
        sba.wait_for((self.workspace / "begun").exists, "the third step")
        process.send_signal(signal.SIGSEGV)
        result = self.check(self.outcome_of(process), 2)
        self.assertEqual([body["result"] for body in server.bodies if body["status"] == "completed"], [result])

    def test_the_variable_of_another_process_means_nothing(self):
        outcome = self.assert_end(self.run_steps(self.run_command("env"), env={"SBA_END": "1 crash -1 {}"}), 0)
        self.assertNotIn("SBA_END", outcome.steps[0]["output"])

    @unittest.skipIf(sba.IS_DEV, "the sanitizers take memory as they like")
    def test_refused_memory(self):
        self.put("large", b"\xff" * (32 << 20))
        steps = [self.sh("true")] * 2 + [self.step("replace_in_file", path="large", old_text="a", new_text="b")]
        outcome = self.run_steps(*steps, max_output_bytes=1 << 30, wrapper=["prlimit", f"--as={24 << 20}"])
        self.assertEqual(outcome.exit, 1, outcome.stderr)
        self.assertIn(outcome.code, ("internal_error", "step_failed"), outcome.stderr)
        self.assertRegex(outcome.message, "(?i)memory")
        self.assertEqual(outcome.statuses, ["success"] * 2 + ["failure"])


sba.main(__name__)
