# SPDX-License-Identifier: Apache-2.0
"""Going on with an interrupted job: what was done stays done, what had begun is done again, and a journal that does not fit is
refused."""
import json
import os
import subprocess

import sba
from sba import SandboxCase

# Kills the runner, which is the shell's parent, the first time.
KILL_ONCE = "test -e killed || { touch killed; kill -KILL $PPID; sleep 30; }"


def shell(script):
    return SandboxCase.step("run_command", shell=script)


def without_times(result):
    """What must be equal in two runs of the same job."""
    whole = json.loads(json.dumps(result))
    for field in ("started_at", "finished_at", "duration_ms", "resource_usage"):
        del whole[field]
    for step in whole["steps"]:
        for field in ("started_at", "duration_ms"):
            del step[field]
        for field in ("duration_ms", "cpu_time_ms", "max_rss_bytes", "created"):
            (step.get("result") or {}).pop(field, None)
        # A file that the killed run wrote is there already when the step is done again.
        step["output"] = step.get("output", "").replace("created ", "wrote ", 1)
    for item in whole["todo"]["items"]:
        item["note"] = None
    return whole


class ResumeTest(SandboxCase):
    environment = {"SBA_CONFINE": "off"}  # its commands kill the runner

    def counted(self, *names):
        return [shell(f"echo {name} | tee -a count") for name in names]

    def counts(self):
        return (self.workspace / "count").read_text().split()

    def kill_in_the_middle(self):
        """Runs a job that is killed in its second step; gives the job."""
        job = self.job(*self.counted("one"), shell(f"sleep 0.5; {KILL_ONCE}; echo two | tee -a count"), *self.counted("three"))
        outcome = self.run_job(job)
        self.assertEqual(outcome.exit, -9)
        self.assertEqual(outcome.result["failure_code"], "interrupted")
        self.assertEqual([step["status"] for step in outcome.result["steps"]], ["success"])
        return job

    def test_a_torn_last_line_of_any_length(self):
        job = self.kill_in_the_middle()
        with open(self.result_path.parent / "journal.jsonl", "ab") as journal:
            journal.write(b'{"event":"step.finished","entry":{"output":"' + b"x" * (60 << 20))
        page = subprocess.run([sba.BINARY, "--report", str(self.result_path)], capture_output=True, text=True, timeout=300, check=False,
                              env={"PATH": "/usr/bin:/bin"}, **sba.ordinary_user())
        self.assertEqual(page.returncode, 0, page.stderr)
        self.assertIn("its last line is incomplete", page.stdout)
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, outcome.result["status"]), (0, "success"), outcome.result)
        self.assertEqual(self.counts(), ["one", "two", "three"])

    def test_finished_steps_are_kept_and_the_rest_is_run(self):
        job = self.kill_in_the_middle()
        first = self.result_path.read_bytes()
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, outcome.result["status"]), (0, "success"))
        self.assertEqual(self.counts(), ["one", "two", "three"])
        self.assertEqual([step["output"] for step in outcome.result["steps"]], ["one\n", "two\n", "three\n"])
        self.assertEqual(outcome.result["steps"][0], json.loads(first)["steps"][0])
        self.assertEqual(outcome.result["started_at"], json.loads(first)["started_at"])
        self.assertEqual(outcome.result["todo"]["items"][1]["note"], "interrupted, run again")
        self.assertIn("step.interrupted", [line["event"] for line in outcome.log])
        self.assertEqual(outcome.result["todo"]["done"], 3)

    def test_a_second_kill_and_a_second_resume(self):
        job = self.kill_in_the_middle()
        (self.workspace / "killed").unlink()
        self.assertEqual(self.run_job(job, "--resume").exit, -9)
        self.assertEqual(self.run_job(job, "--resume").exit, 0)
        self.assertEqual(self.counts(), ["one", "two", "three"])

    def test_the_same_result_as_without_the_kill(self):
        job = self.kill_in_the_middle()
        resumed = without_times(self.run_job(job, "--resume").result)
        (self.workspace / "count").unlink()
        self.assertEqual(resumed, without_times(self.run_job(job).result))

    def test_a_job_that_was_over_gives_its_result_again(self):
        for steps in (self.counted("one"), [*self.counted("one"), shell("exit 3"), *self.counted("never")], []):
            job = self.job(*steps)
            first = self.run_job(job)
            journal = (self.job_directory / "journal.jsonl").read_bytes()
            self.result_path.unlink()
            (self.workspace / "count").unlink(missing_ok=True)
            second = self.run_job(job, "--resume")
            self.assertEqual((second.exit, second.result_bytes), (first.exit, first.result_bytes))
            self.assertFalse((self.workspace / "count").exists())
            self.assertEqual((self.job_directory / "journal.jsonl").read_bytes(), journal)

    def test_a_step_that_had_failed_is_not_tried_again(self):
        job = self.job(shell("echo x >> count; false"), shell("true"))
        first = self.run_job(job)
        journal = self.job_directory / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        self.assertEqual([json.loads(line)["event"] for line in lines],
                         ["job", "step.started", "step.finished", "step.finished", "job.finished"])
        for count in (3, 4):
            journal.write_bytes(b"".join(lines[:count]))
            second = self.run_job(job, "--resume")
            self.assertEqual((second.exit, without_times(second.result)), (1, without_times(first.result)))
        self.assertEqual(self.counts(), ["x"])

    def test_no_journal_is_a_beginning(self):
        outcome = self.run_job(self.job(*self.counted("one")), "--resume")
        self.assertEqual((outcome.exit, self.counts()), (0, ["one"]))
        self.assertIn("journal.missing", [line["event"] for line in outcome.log])

    def test_a_torn_last_line_does_not_count(self):
        job = self.kill_in_the_middle()
        with open(self.job_directory / "journal.jsonl", "ab") as journal:
            journal.write(b'{"event":"step.finished","entry":{"index":1,"id":"st')
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, self.counts()), (0, ["one", "two", "three"]))
        for line in (self.job_directory / "journal.jsonl").read_text().splitlines():
            json.loads(line)

    def check_refused(self, job, words):
        journal = (self.job_directory / "journal.jsonl").read_bytes()
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, outcome.result["failure_code"]), (2, "schema_validation"))
        self.assertIn(words, outcome.result["failure_message"])
        self.assertIn("without --resume", outcome.result["failure_message"])
        self.assertEqual((self.job_directory / "journal.jsonl").read_bytes(), journal)
        self.assertEqual(self.counts(), ["one"])

    def test_a_journal_of_another_job(self):
        job = self.kill_in_the_middle()
        job["constraints"]["max_runtime_seconds"] += 1
        self.check_refused(job, "another job")

    def test_an_edited_journal(self):
        job = self.kill_in_the_middle()
        journal = self.job_directory / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        for edited in ([lines[0], b"edited\n", *lines[1:]], [lines[0], *lines[2:]], [lines[0], lines[1], lines[2], lines[2]],
                       [lines[0], lines[1], lines[2].replace(b"step-1", b"step-2")], lines[1:], [b"\n", *lines],
                       [lines[0], b'{"event":"step.started","index":1e9}\n'], [b"\0\xff\n"], [b"[" * 100000 + b"\n"]):
            journal.write_bytes(b"".join(edited))
            self.check_refused(job, "journal.jsonl cannot be used, line ")

    def test_a_journal_that_is_no_file(self):
        job = self.kill_in_the_middle()
        journal = self.job_directory / "journal.jsonl"
        journal.unlink()
        journal.mkdir()
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, outcome.result["failure_code"]), (2, "schema_validation"))

    def test_a_fresh_run_forgets_the_old_journal(self):
        job = self.kill_in_the_middle()
        self.assertEqual(self.run_job(job).exit, 0)
        self.assertEqual(self.counts(), ["one", "one", "two", "three"])

    def test_a_journal_that_cannot_be_written_does_not_stop_the_job(self):
        os.mkfifo(self.job_directory / "journal.jsonl")
        outcome = self.run_job(self.job(*self.counted("one")))
        self.assertEqual((outcome.exit, self.counts()), (0, ["one"]))
        self.assertEqual([line["event"] for line in outcome.log].count("journal.failed"), 1)

    def test_a_link_in_the_journals_place_is_not_followed(self):
        target = self.put("target", "untouched")
        (self.job_directory / "journal.jsonl").symlink_to(target)
        self.assertEqual(self.run_job(self.job(*self.counted("one"))).exit, 0)
        self.assertEqual(target.read_text(), "untouched")


if __name__ == "__main__":
    sba.main()
