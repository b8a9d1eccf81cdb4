# SPDX-License-Identifier: Apache-2.0
"""Disks that are full: the result's, from the start or in the middle, and the log's. The workspace's: test_files.py."""
import json
import os

import sba
from agent_case import AgentCase
from sba import SandboxCase

OLDER = '{"job_id": "older"}'


class FullDisk(AgentCase):
    """The result and what stands beside it are on a file system of 128 KiB."""

    def setUp(self):
        super().setUp()
        self.disk = self.root / "disk"
        self.disk.mkdir()
        self.mount(self.disk, "128k")
        self.result_path = self.disk / "result.json"
        self.fill = self.sh(f"head -c 1000000 /dev/zero >{self.disk}/filler; true")
        self.free = self.sh(f"rm {self.disk}/filler")

    def test_from_the_start(self):
        # Nothing runs, for it could not be told; an older result is not harmed.
        for older in (None, OLDER):
            with self.subTest(older=older):
                (self.disk / "filler").unlink(missing_ok=True)
                if older:
                    self.result_path.write_text(older)
                with open(self.disk / "filler", "wb", buffering=0) as filler, self.assertRaises(OSError):
                    while True:
                        filler.write(b"x" * 4096)
                done = self.run_steps(self.sh("touch ran"))
                self.assertEqual(done.exit, 3, done.stderr)
                result = done.result_on_stderr
                self.assertEqual((result["failure_code"], [step["status"] for step in result["steps"]]),
                                 ("environment_invalid", []), result)
                self.assertIn("No space left", result["failure_message"])
                self.assertFalse((self.workspace / "ran").exists())
                self.assertEqual(self.result_path.read_text() if self.result_path.exists() else None, older)

    def test_in_the_middle(self):
        # The job goes on, and its result has the room that was kept for it.
        self.put("x", "1\n")
        done = self.assert_end(self.run_steps(self.sh("echo one"), self.sh(self.until_said("one")), self.fill,
                                              self.apply_diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"),
                                              self.sh("head -c 20000 /dev/zero | tr '\\0' x")), 0)
        self.assertEqual((done.statuses, done.steps[4]["output"]), (["success"] * 5, "x" * 20000))
        self.assertEqual(self.text("x"), "2\n")
        self.assertEqual(sorted(os.listdir(self.disk)), "artifacts filler journal.jsonl result.json todo.json".split())
        self.assertEqual((len(done.events("journal.failed")), done.events("result.failed")), (1, []))
        lines = [json.loads(line)["event"] for line in (self.disk / "journal.jsonl").read_text().splitlines()]
        self.assertEqual((lines[0], lines[-1]), ("job", "journal.failed"))

    def test_a_result_that_is_larger_than_the_room(self):
        # The largest outputs are left out. One that is in a file meanwhile goes on in memory.
        for size in (200000, 3000000):
            (self.disk / "filler").unlink(missing_ok=True)
            done = self.run_steps(self.sh("echo one"), self.fill, self.sh(f"head -c {size} /dev/zero | tr '\\0' x"),
                                  max_output_bytes=1 << 22)
            self.assert_end(done, 0)
            first, _, last = done.steps
            self.assertEqual((first["output"], last["exit_code"], last["output_truncated"]), ("one\n", 0, True))
            self.assertRegex(last["output"],
                             r"^\[no space is left on the disk of the result: \d+ bytes of this step are left out\]$")
            self.assertGreater(int(last["output"].split()[10]), size)
            self.assertEqual(len(done.events("result.shortened")), 1)

    def test_where_room_comes_back_the_result_is_written_but_nobody_goes_on(self):
        # Steps were done that the journal does not know of: --resume would do them again.
        job = self.job(self.fill, self.sh("echo x >>count; head -c 20000 /dev/zero | tr '\\0' x"), self.free)
        done = self.assert_end(self.run_job(job), 0)
        self.assertTrue(done.events("journal.failed"))
        again = self.run_job(job, "--resume")
        self.assertEqual((again.exit, again.result), (2, done.result), "the result that stands is left as it is")
        self.assertIn("what was done then could not be written", again.stderr.decode())
        self.assertEqual(self.text("count"), "x\n")


class LimitedFiles(SandboxCase):
    """RLIMIT_FSIZE: the kernel sends SIGXFSZ to whoever writes more."""
    wrapper = ["prlimit", "--fsize=200000"]

    def test_a_step_fails(self):
        done = self.run_steps(self.write_file("a", "x" * 300000), wrapper=self.wrapper)
        step = done.steps[0]
        self.assertEqual((done.exit, step["status"], step["error_code"]), (1, "failure", "file_too_large"), done.result)
        self.assertIn("File too large", step["error"])

    def test_a_result_that_is_too_large_is_shortened_as_on_a_full_disk(self):
        done = self.run_steps(self.sh("echo one"), self.sh(self.until_said("one")),
                              self.sh("head -c 300000 /dev/zero | tr '\\0' x"), wrapper=self.wrapper)
        self.assertEqual((done.exit, done.status, done.steps[0]["output"]), (0, "success", "one\n"), done.stderr)
        self.assertIn("bytes of this step are left out", done.steps[2]["output"])
        self.assertTrue(done.events("journal.failed") and done.events("result.shortened"))


class FullLog(SandboxCase):
    def test_a_log_that_takes_nothing_harms_nothing(self):
        for form in ("json", "text"):
            with open("/dev/full", "wb") as full:
                done = self.run_job(self.job(self.sh("echo said")), "--log-format", form, stderr=full)
            self.assertEqual((done.exit, done.steps[0]["output"]), (0, "said\n"))

    def test_a_result_that_stdout_does_not_take_goes_to_stderr(self):
        with open("/dev/full", "wb") as full:
            done = self.run_job(self.job(self.sh("echo said")), "--result", "-", stdout=full)
        self.assertEqual((done.exit, done.result_on_stderr["steps"][0]["output"]), (3, "said\n"))

    def test_where_nothing_takes_it_the_status_tells(self):
        with open("/dev/full", "wb") as full:
            done = self.run_job(self.job(self.sh("true")), "--result", "-", stdout=full, stderr=full)
        self.assertEqual(done.exit, 3)
        self.assertEqual(sorted(os.listdir(self.job_directory)), ["job.json"])


sba.main(__name__)
