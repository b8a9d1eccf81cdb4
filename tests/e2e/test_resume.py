# SPDX-License-Identifier: Apache-2.0
"""Going on with an interrupted job: what was done stays done, what had begun is done again, and a journal that does not
fit is refused."""
import datetime
import fcntl
import json
import os
import signal
import unittest

import sba
from sba import SandboxCase

# Kills the runner, which is the shell's parent, the first time.
KILL_ONCE = "test -e killed || { touch killed; sleep 30; }"

shell = SandboxCase.sh


class ResumeTest(SandboxCase):
    environment = {"SBA_CONFINE": "off"}  # its commands kill the runner

    def counted(self, *names):
        return [shell(f"echo {name} | tee -a count") for name in names]

    def counts(self):
        return self.text("count").split()

    def kill_in_the_middle(self):
        """Runs a job that is killed in its second step; gives the job."""
        second = shell(f"{self.until_said('one')}; {KILL_ONCE}; echo two | tee -a count")
        job = self.job(*self.counted("one"), second, *self.counted("three"))
        outcome = self.run_and_kill(job)
        self.assertEqual((outcome.exit, outcome.code, outcome.statuses), (-9, "interrupted", ["success"]))
        return job

    def test_a_torn_last_line_of_any_length(self):
        job = self.kill_in_the_middle()
        with open(self.journal_file, "ab") as journal:
            journal.write(b'{"event":"step.finished","entry":{"output":"' + b"x" * (60 << 20))
        page = sba.run("--report", self.result_path)
        self.assertEqual(page.returncode, 0, page.stderr)
        self.assertIn(b"its last line is incomplete", page.stdout)
        self.assert_end(self.run_job(job, "--resume"), 0)
        self.assertEqual(self.counts(), ["one", "two", "three"])
        self.assertEqual(len(self.journal()), len(self.journal_file.read_text().splitlines()))

    def test_finished_steps_are_kept_and_the_rest_is_run(self):
        job = self.kill_in_the_middle()
        first = self.result_path.read_bytes()
        outcome = self.assert_end(self.run_job(job, "--resume"), 0)
        self.assertEqual(self.counts(), ["one", "two", "three"])
        self.assertEqual([step["output"] for step in outcome.steps], ["one\n", "two\n", "three\n"])
        self.assertEqual(outcome.steps[0], json.loads(first)["steps"][0])
        self.assertEqual(outcome.result["started_at"], json.loads(first)["started_at"])
        begun, over = (datetime.datetime.fromisoformat(outcome.result[name].replace("Z", "+00:00"))
                       for name in ("started_at", "finished_at"))
        self.assertEqual(outcome.result["duration_ms"], (over - begun) // datetime.timedelta(milliseconds=1))
        self.assertEqual(outcome.result["todo"]["items"][1]["note"], "interrupted, run again")
        self.assertTrue(outcome.events("step.interrupted"))
        self.assertEqual(outcome.result["todo"]["done"], 3)

    def test_a_second_kill_and_a_second_resume(self):
        job = self.kill_in_the_middle()
        (self.workspace / "killed").unlink()
        self.assertEqual(self.run_and_kill(job, "--resume").exit, -9)
        self.assertEqual(self.run_job(job, "--resume").exit, 0)
        self.assertEqual(self.counts(), ["one", "two", "three"])

    def test_a_job_that_was_over_gives_its_result_again(self):
        for steps in (self.counted("one"), []):
            job = self.job(*steps)
            first = self.run_job(job)
            journal = self.journal_file.read_bytes()
            self.result_path.unlink()
            (self.workspace / "count").unlink(missing_ok=True)
            second = self.run_job(job, "--resume")
            self.assertEqual((second.exit, second.result_bytes), (first.exit, first.result_bytes))
            self.assertFalse((self.workspace / "count").exists())
            self.assertEqual(self.journal_file.read_bytes(), journal)
            self.assertEqual([line["event"] for line in second.log], ["job.done_before", "job.finished"])
            self.assertIn("had succeeded", second.log[0]["message"])
            shown = self.run_job(job, "--resume", "--log-format", "text").stderr.decode()
            self.assertIn("the job had succeeded before: its result is written again\n", shown)

    def test_a_step_that_had_failed_runs_again(self):
        # Whether the job was over or the runner was killed right after the step.
        job = self.job(*self.counted("one"), shell("echo x >> count; test -e good"), *self.counted("three"))
        first = self.run_job(job)
        self.assertEqual((first.exit, first.statuses), (1, ["success", "failure", "skipped"]))
        self.assertEqual([item["status"] for item in first.result["todo"]["items"]], ["done", "dropped", "dropped"])
        lines = self.journal_file.read_bytes().splitlines(keepends=True)
        for count in (5, 6, len(lines)):
            self.put("count", "one\nx\n")
            (self.workspace / "good").unlink(missing_ok=True)
            self.journal_file.write_bytes(b"".join(lines[:count]))
            second = self.run_job(job, "--resume")
            self.assertEqual(second.exit, 1, count)
            self.assertEqual(sba.without_times(second.result), sba.without_times(first.result), count)
            self.put("good")
            third = self.run_job(job, "--resume")
            self.assertEqual((third.exit, self.counts()), (0, ["one", "x", "x", "x", "three"]), third.result)
            self.assertEqual(third.statuses, ["success"] * 3)
            self.assertEqual([item["status"] for item in third.result["todo"]["items"]], ["done"] * 3)
            self.assertEqual(third.result["todo"]["items"][1]["note"], "failed, run again")
            self.assertEqual(third.result["started_at"], first.result["started_at"])
            self.assertEqual(self.run_job(job, "--resume").result_bytes, third.result_bytes)

    def test_what_a_signal_or_the_deadline_ended_goes_on(self):
        for number, exit_status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (None, 124)):
            with self.subTest(number):
                wait = shell("touch begun; test -e good || sleep 60; echo two | tee -a count")
                steps = [*self.counted("one"), wait, *self.counted("three")]
                job = self.job(*steps, max_runtime_seconds=60 if number else 1)
                if number:
                    first = self.run_and_signal(job, number, (self.workspace / "begun").exists, "the second step")
                else:
                    first = self.run_job(job)
                self.assertEqual(first.exit, exit_status)
                self.put("good")
                second = self.run_job(job, "--resume")
                self.assertEqual((second.exit, self.counts()), (0, ["one", "two", "three"]), second.result)
                self.assertEqual([line["event"] for line in self.journal()].count("job.resumed"), 1)
                for name in ("good", "begun", "count"):
                    (self.workspace / name).unlink()

    @sba.wants("strace")
    @unittest.skipIf(sba.IS_DEV, "its loader reads before the program begins")
    def test_a_signal_while_the_journal_is_read_loses_no_step(self):
        # At any moment: of a job that goes on all its steps stay; a result that is final stays as it is.
        moments = [("flock", 1), ("read", 1), ("read", 2), ("read", 3), ("read", 4), ("pread64", 1), ("writev", 1)]
        many = [shell("true") for _ in range(300)]
        for last, is_over in ((shell("exit 1"), False), (shell("true"), True)):
            job = self.job(*many, last)
            first = self.run_job(job)
            journal = self.journal_file.read_bytes()
            for call, number in moments:
                self.journal_file.write_bytes(journal)
                signalled = sba.injecting(call, f"signal=SIGTERM:when={number}")
                outcome = self.run_job(job, "--resume", wrapper=signalled)
                if is_over:
                    self.assertEqual((outcome.exit, outcome.result_bytes), (0, first.result_bytes), call)
                    self.assertEqual(self.journal_file.read_bytes(), journal, call)
                else:
                    ended = outcome.exit, outcome.code
                    self.assertEqual(ended, (143, "cancelled"), (call, number, outcome.message))
                    self.assertEqual(outcome.statuses, ["success"] * len(many) + ["skipped"])

    def test_no_journal_is_a_beginning(self):
        outcome = self.run_job(self.job(*self.counted("one")), "--resume")
        self.assertEqual((outcome.exit, self.counts()), (0, ["one"]))
        self.assertTrue(outcome.events("journal.missing"))

    def check_refused(self, job, words):
        """The result and the journal stay as they are; the log says why."""
        files = self.result_path, self.journal_file
        before = [path.read_bytes() for path in files]
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, [path.read_bytes() for path in files]), (2, before))
        refused = outcome.events("job.refused")[0]
        self.assertEqual(refused["failure_code"], "schema_validation")
        self.assert_says(refused["failure_message"], words, "without --resume")
        self.assertEqual(self.counts(), ["one"])

    def test_a_journal_of_another_job(self):
        job = self.kill_in_the_middle()
        job["task_id"] = "another"
        self.check_refused(job, "another job")

    def test_an_edited_journal(self):
        job = self.kill_in_the_middle()
        lines = self.journal_file.read_bytes().splitlines(keepends=True)
        first, begun, finished, *rest = [line for line in lines if b'"step.session"' not in line]
        for edited in ([first, b"edited\n", begun, finished, *rest], [first, finished, *rest],
                       [first, begun, finished, finished], [begun, finished, *rest],
                       [first, begun, finished.replace(b"step-1", b"step-2")],
                       [b"x\n", first, begun, finished, *rest], [b"\0"], [b"\0\xff\n"],
                       [first, b'{"event":"step.started","index":1e9}\n'], [b"[" * 100000 + b"\n"]):
            self.journal_file.write_bytes(b"".join(edited))
            self.check_refused(job, "journal.jsonl cannot be used, line ")

    def test_a_fresh_run_forgets_the_old_journal(self):
        job = self.kill_in_the_middle()
        self.assertEqual(self.run_job(job).exit, 0)
        self.assertEqual(self.counts(), ["one", "one", "two", "three"])

    def test_a_link_in_the_journals_place_is_not_followed(self):
        target = self.put("target", "untouched")
        self.journal_file.symlink_to(target)
        self.assertEqual(self.run_steps(*self.counted("one")).exit, 0)
        self.assertEqual(target.read_text(), "untouched")


class TwiceTest(SandboxCase):
    def test_an_append_is_undone_after_a_refused_resume(self):
        # The second run ends before it comes to the append that the first one had done.
        job = self.job(self.step("write_file", path="log", content="line\n", append=True), shell("cat log"))
        self.run_job(job)
        lines = self.journal_file.read_bytes().splitlines(keepends=True)
        begun = next(number for number, line in enumerate(lines) if b'"step.append"' in line)
        self.journal_file.write_bytes(b"".join(lines[:begun + 1]))
        self.assertEqual(self.run_job(job, "--resume", "--workspace", "/nonexistent").exit, 2)
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, (self.workspace / "log").read_text()), (0, "line\n"), outcome.message)


class LockTest(SandboxCase):
    """One runner to a job directory."""

    def check_locked(self, outcome, kept):
        self.assertEqual((outcome.exit, outcome.stdout), (2, b""), outcome.stderr)
        self.assertEqual([line["event"] for line in outcome.log], ["job.locked"])
        self.assertIn("another runner works in this job directory", outcome.log[0]["error"])
        self.assertEqual(sorted(path.name for path in self.job_directory.iterdir() if path.name != ".result.json.tmp"),
                         ["artifacts", "job.json", "journal.jsonl", "result.json", "todo.json"])
        self.assertEqual(self.journal_file.read_bytes(), kept)

    def test_a_second_runner_does_nothing(self):
        job = self.job(shell("touch begun; until test -e go; do sleep 0.02; done; echo done >> count"))
        first = self.start(job)
        sba.wait_for((self.workspace / "begun").exists, "the first runner's step")
        sba.wait_for(lambda: b'"step.session"' in self.journal_file.read_bytes(), "its command in the journal")
        kept, result = self.journal_file.read_bytes(), self.result_path.read_bytes()
        for more in ((), ("--resume",)):
            self.check_locked(self.run_job(job, *more), kept)
        self.check_locked(self.run_job("no job"), kept)
        self.assertEqual(json.loads(result)["failure_code"], json.loads(self.result_path.read_bytes())["failure_code"])
        self.put("go")
        self.assertEqual(self.outcome_of(first).exit, 0)
        self.assertEqual((self.workspace / "count").read_text(), "done\n")

    def test_nothing_is_written_before_the_lock(self):
        self.put(self.journal_file, "of another runner, torn")
        with open(self.journal_file, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            outcome = self.run_steps(shell("touch never"))
        self.assertEqual((outcome.exit, outcome.result), (2, None), outcome.stderr)
        self.assertIn("journal.jsonl` says by which process", outcome.log[0]["error"])
        self.assertEqual(self.journal_file.read_text(), "of another runner, torn")
        self.assertFalse((self.workspace / "never").exists())

    @sba.wants("strace")
    def test_a_file_system_without_locks(self):
        for error in ("ENOLCK", "EOPNOTSUPP"):
            outcome = self.run_steps(shell("true"), wrapper=sba.injecting("flock", f"error={error}"))
            self.assert_end(outcome, 0)
            self.assertEqual(len(outcome.events("journal.not_locked")), 1)

    def test_a_refused_job_leaves_no_journal(self):
        self.assertEqual(self.run_job("no job").exit, 2)
        self.assertFalse(self.journal_file.exists())


class InterruptedTest(SandboxCase):
    """SIGKILL in the middle of a step: result, log and journal name it, and have what it had said."""
    environment = {"SBA_CONFINE": "off"}

    def waiting(self, script, **fields):
        """A job, and its runner, while its second step has run the script and waits."""
        second = shell(f"test -e killed && exit; touch killed; {script}; touch now; sleep 60")
        job = self.job(shell("true"), second, **fields)
        process = self.start(job)
        sba.wait_for((self.workspace / "now").exists, "the step to say what it says")
        return job, process

    def kill(self, process):
        process.kill()
        return self.outcome_of(process)

    def said(self):
        return json.loads(self.result_path.read_text()).get("running_step", {}).get("output", "")

    def test_the_step_is_named_with_what_it_said(self):
        job, process = self.waiting("echo to stdout; echo to stderr >&2")
        sba.wait_for(self.said, "the result to have it")
        killed = self.kill(process)
        result = killed.result
        sba.result_validator().validate(result)
        step = result["running_step"]
        self.assertEqual((step["index"], step["id"], step["type"]), (1, "step-2", "run_command"))
        self.assertEqual(step["output"], "to stdout\nto stderr\n")
        self.assertIn(f"step 2 (step-2, run_command) ran since {step['started_at']}", killed.message)
        self.assertEqual(killed.statuses, ["success"])
        self.assertGreaterEqual(result["duration_ms"], 200)
        outcome = self.assert_end(self.run_job(job, "--resume"), 0)
        self.assertNotIn("running_step", outcome.result)
        (told,), said = outcome.events("step.interrupted"), "to stdout\nto stderr\n"
        self.assertEqual((told["step"], told["id"], told["output_tail"]), (2, "step-2", said))
        journal = self.journal()
        begun = next(line["at"] for line in journal if line["event"] == "step.started" and line["index"] == 1)
        kept = next(line for line in journal if line["event"] == "step.interrupted")
        self.assertEqual((kept["index"], kept["since"], kept["output"]), (1, begun, said))
        self.assertEqual(told["since"], begun)

    def test_the_output_is_bounded_and_its_end_is_kept(self):
        script = "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo the end"
        _, process = self.waiting(script, max_output_bytes=1 << 30)
        sba.wait_for(lambda: self.said().endswith("the end\n"), "the end of the output")
        step = self.kill(process).result["running_step"]
        self.assertEqual((len(step["output"]), step["output_truncated"]), (4096, True))
        self.assertEqual([name for name in os.listdir(self.job_directory) if "sba" in name], [])

    def test_a_step_that_is_over_leaves_nothing(self):
        outcome = self.run_steps(shell("echo said; sleep 0.5; echo more"), shell("sleep 0.3; exit 1"))
        self.assertNotIn("running_step", outcome.result)


sba.main(__name__)
