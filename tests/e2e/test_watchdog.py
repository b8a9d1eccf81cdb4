# SPDX-License-Identifier: Apache-2.0
"""The end that does not depend on Lua: a runner that hangs ends itself, with a complete result."""
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

import sba

TOOLS = os.environ["SBA_TOOLS"]


class WatchdogCase(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        sba.BINARY = os.path.join(TOOLS, "hanging")
        self.slow = sba.slowness()

    def hanging(self, way, *before, **fields):
        return self.job(*before, self.step("list_tree", way=way, library=os.path.join(TOOLS, "libhang.so")),
                        self.step("run_command", shell="touch never"), **fields)

    def assert_ended(self, done, status, code, exit_status, seconds, steps=0):
        """seconds: after which the runner must be over, from its start."""
        self.assertEqual(done.exit, exit_status, done.stderr)
        result = done.result or json.loads(done.stdout)
        self.assertEqual((result["status"], result["failure_code"]), (status, code), result)
        sba.result_validator().validate(result)
        self.assertEqual([step["status"] for step in result["steps"]], ["success"] * steps)
        self.assertEqual(done.log[-1]["event"], "watchdog.ended")
        self.assertFalse((self.workspace / "never").exists())
        self.assertGreaterEqual(result["duration_ms"], (seconds - 0.5) * 1000 - 10)
        self.assertLess(result["duration_ms"], seconds * 1000 * max(1, self.slow, sba.slowness()))
        return result

    def stop_when_hanging(self, process, number):
        while b'"type":"list_tree"' not in (line := process.stderr.readline()):
            self.assertTrue(line, "the runner ended before the step that hangs")
        process.send_signal(number)


class HangingRunner(WatchdogCase):
    def test_past_the_deadline_whatever_runs(self):
        # It takes a second: on a slow disk the first checkpoint of the result puts off the next.
        daemon = self.step("run_command", shell="sleep 1; setsid sleep 600 & echo $! >pid")
        for way in ("find", "c"):
            with self.subTest(way=way):
                done = self.run_job(self.hanging(way, daemon, max_runtime_seconds=5))
                self.assert_ended(done, "timeout", "timeout", 124, 8, steps=1)
                self.assertRaises(ProcessLookupError, os.kill, int((self.workspace / "pid").read_text()), 0)

    def test_past_a_signal(self):
        for number, exit_status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process = self.start(self.hanging("c"))
            self.stop_when_hanging(process, number)
            self.assert_ended(self.outcome_of(process), "failure", "cancelled", exit_status, 5.5)

    def test_with_the_result_on_stdout(self):
        done = self.run_job(self.hanging("find", self.step("run_command", shell="sleep 1; echo said"), max_runtime_seconds=5), "--result", "-")
        result = self.assert_ended(done, "timeout", "timeout", 124, 8, steps=1)
        self.assertEqual(result["steps"][0]["output"], "said\n")

    def test_a_result_that_is_written_in_place(self):
        self.result_path.write_text("{}" + " " * 100000)
        self.give(self.result_path)
        for name in ("todo.json", "journal.jsonl"):
            (self.job_directory / name).touch()
            self.give(self.job_directory / name)
        (self.job_directory / "artifacts").mkdir()
        process = self.start(self.hanging("find", max_runtime_seconds=1), wrapper=["sh", "-c", 'chmod 555 . && exec "$0" "$@"'],
                             cwd=self.job_directory)
        self.assert_ended(self.outcome_of(process), "timeout", "timeout", 124, 4)

    def test_the_text_log(self):
        done = self.run_job(self.hanging("find", max_runtime_seconds=1), "--log-format", "text")
        self.assertEqual(done.exit, 124)
        self.assertTrue(done.stderr.decode().splitlines()[-1].startswith("error: watchdog ended: "), done.stderr)


@unittest.skipUnless(sba.UID and shutil.which("bindfs") and os.access("/dev/fuse", os.W_OK), "wants root, bindfs and FUSE")
class StalledFileSystem(WatchdogCase):
    """A file system whose server stands still answers nothing, and only a kill ends the wait for it."""

    def stall(self, directory):
        """Mounts the directory over itself and returns what makes it stand still."""
        server = subprocess.Popen(["bindfs", "-f", str(directory), str(directory)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(subprocess.run, ["umount", "-l", str(directory)], check=True)
        self.addCleanup(server.send_signal, signal.SIGCONT)
        sba.wait_for(lambda: os.path.ismount(directory), "the file system")
        return lambda: server.send_signal(signal.SIGSTOP)

    def run_stalled(self, directory, *steps):
        """Runs steps on a file system that stalls before them."""
        sba.BINARY = os.environ["SBA_BINARY"]
        meeting = self.root / "meeting"
        meeting.mkdir()
        self.give(meeting)
        stall = self.stall(directory)
        wait = self.step("run_command", shell="touch begun; until [ -e go ]; do sleep 0.05; done", working_dir=str(meeting))
        process = self.start(self.job(wait, *steps, max_runtime_seconds=5))
        sba.wait_for((meeting / "begun").exists, "the command to begin")
        stall()
        (meeting / "go").touch()
        return process

    def test_of_the_workspace(self):
        done = self.outcome_of(self.run_stalled(self.workspace, self.step("write_file", path="a", content="x")))
        self.assertEqual((done.exit, done.result["status"]), (124, "timeout"), done.stderr)
        self.assertIn("watchdog", done.result["failure_message"])

    def test_of_the_result(self):
        """There is no place for a result then: what stands stays, and the status says why the job ended."""
        results = self.root / "results"
        results.mkdir()
        self.give(results)
        self.result_path = results / "result.json"
        process = self.run_stalled(results, self.step("run_command", shell="true"))
        self.addCleanup(process.communicate)
        self.assertEqual(process.wait(timeout=60), 124)


if __name__ == "__main__":
    if not sba.IS_DEV:
        print("skipped: the runner that hangs is a dev build", file=sys.stderr)
        sys.exit(77)
    sba.main()
