# SPDX-License-Identifier: Apache-2.0
"""The end that does not depend on Lua: a runner that hangs ends itself, with a complete result."""
import json
import os
import signal

import sba
from process_case import hold



class WatchdogCase(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        sba.BINARY = str(sba.TOOLS / "hanging")
        self.slow = sba.slowness()

    def hanging(self, way, *before, **fields):
        return self.job(*before, self.step("list_tree", way=way, library=str(sba.TOOLS / "libhang.so")),
                        self.sh("touch never"), **fields)

    def assert_ended(self, done, status, code, exit_status, seconds, steps=0):
        """seconds: after which the runner must be over, from its start."""
        self.assertEqual(done.exit, exit_status, done.stderr)
        result = done.result or json.loads(done.stdout)
        self.assertEqual((result["status"], result["failure_code"]), (status, code), result)
        sba.result_validator().validate(result)
        hung = "timeout" if code == "timeout" else "failure"
        self.assertEqual([step["status"] for step in result["steps"]], ["success"] * steps + [hung, "skipped"])
        self.assertEqual([item["status"] for item in result["todo"]["items"]], ["done"] * steps + ["dropped"] * 2)
        self.assertNotEqual(result["confinement"], {"writes": "none"})
        self.assertEqual(done.log[-1]["event"], "watchdog.ended")
        self.assertFalse((self.workspace / "never").exists())
        self.assertGreaterEqual(result["duration_ms"], (seconds - 0.5) * 1000 - 10)
        self.assertLess(result["duration_ms"], seconds * 1000 * max(1 if sba.LONG else 3, self.slow, sba.slowness()))
        return result

    def stop_when_hanging(self, process, number):
        while b'"type":"list_tree"' not in (line := process.stderr.readline()):
            self.assertTrue(line, "the runner ended before the step that hangs")
        process.send_signal(number)


class HangingRunner(WatchdogCase):
    def test_past_the_deadline_whatever_runs(self):
        # It takes a second: on a slow disk the first checkpoint of the result puts off the next.
        daemon = self.sh("sleep 1; setsid sleep 600 & echo $! >pid")
        for way in ("find", "c"):
            with self.subTest(way=way):
                done = self.run_job(self.hanging(way, daemon, max_runtime_seconds=5))
                self.assert_ended(done, "timeout", "timeout", 124, 8, steps=1)
                self.assertRaises(ProcessLookupError, os.kill, int(self.text("pid")), 0)

    def test_what_cannot_be_ended_does_not_hold_the_result(self):
        daemon = self.sh("setsid sleep 600 >/dev/null 2>&1 & echo $! >pid")
        process = self.start(self.hanging("c", daemon, max_runtime_seconds=3))
        path = self.workspace / "pid"
        pid = sba.wait_for(lambda: path.exists() and path.read_text().strip(), "the daemon")
        holder = hold(self, process, int(pid))
        result = sba.wait_for(self.timed_out, "the complete result")
        self.assertIn(f"process {holder.pid} could not be ended", result["failure_message"])
        self.assertEqual(self.outcome_of(process).exit, 124)

    def timed_out(self):
        result = json.loads(self.result_path.read_text()) if self.result_path.exists() else {"status": "none"}
        return result if result["status"] == "timeout" else None

    def test_past_a_signal(self):
        for number, exit_status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process = self.start(self.hanging("c"))
            self.stop_when_hanging(process, number)
            self.assert_ended(self.outcome_of(process), "failure", "cancelled", exit_status, 5.5)

    def test_with_the_result_on_stdout(self):
        done = self.run_job(self.hanging("find", self.sh("sleep 1; echo said"), max_runtime_seconds=5), "--result", "-")
        result = self.assert_ended(done, "timeout", "timeout", 124, 8, steps=1)
        self.assertEqual(result["steps"][0]["output"], "said\n")

    def test_a_result_that_is_written_in_place(self):
        self.put(self.result_path, "{}" + " " * 100000)
        for name in ("todo.json", "journal.jsonl"):
            self.put(self.job_directory / name)
        (self.job_directory / "artifacts").mkdir()
        process = self.start(self.hanging("find", max_runtime_seconds=1),
                             wrapper=["sh", "-c", 'chmod 555 . && exec "$0" "$@"'],
                             cwd=self.job_directory)
        self.assert_ended(self.outcome_of(process), "timeout", "timeout", 124, 4)

    def test_the_text_log(self):
        done = self.run_job(self.hanging("find", max_runtime_seconds=1), "--log-format", "text")
        self.assertEqual(done.exit, 124)
        self.assertTrue(done.stderr.decode().splitlines()[-1].startswith("error: watchdog ended: "), done.stderr)


if not sba.IS_DEV:
    sba.skip("the runner that hangs is a dev build")
sba.main(__name__)
