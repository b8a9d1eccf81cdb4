# SPDX-License-Identifier: Apache-2.0
"""At the deadline the complete result is in place in time, however long processes live or the disk takes."""
import json
import signal
import time

import sba
from process_case import hold
from sba import SandboxCase

TIMEOUT = 2  # seconds of the jobs
BOUND = sba.IN_TIME if sba.LONG else 10  # seconds after it


class DeadlineCase(SandboxCase):
    def final_result(self):
        result = json.loads(self.result_path.read_text()) if self.result_path.exists() else {}
        return result if result.get("failure_code", "interrupted") != "interrupted" else None

    def assert_complete_in_time(self, began):
        result = sba.wait_for(self.final_result, "the complete result")
        self.assertLess(time.monotonic() - began, TIMEOUT + BOUND)
        sba.result_validator().validate(result)
        return result


class Held(DeadlineCase):
    def hold(self, process):
        path = self.workspace / "pid"
        sba.wait_for(lambda: path.exists() and path.read_text().endswith("\n"), "the command")
        return hold(self, process, int(path.read_text()))

    def steps(self, **more):
        kept = self.sh("echo kept >$CYNODE_ARTIFACTS_DIR/kept")
        return kept, self.sh("echo $$ >pid; exec sleep 600", **more), self.sh("echo three")

    def start_held(self, job):
        began = time.monotonic()
        process = self.start(job)
        return began, process, self.hold(process)

    def test_at_the_deadline(self):
        began, process, holder = self.start_held(self.job(*self.steps(), max_runtime_seconds=TIMEOUT))
        result = self.assert_complete_in_time(began)
        self.assertEqual([step["status"] for step in result["steps"]], ["success", "timeout", "skipped"])
        self.assertIn(f"process {holder.pid} could not be ended", result["failure_message"])
        self.assertEqual([artifact.keys() for artifact in result["artifacts"]], [{"path", "size_bytes", "sha256"}])
        done = self.outcome_of(process)
        self.assertEqual((done.exit, done.code), (124, "timeout"))
        self.assertEqual(done.message, result["failure_message"])
        self.assertEqual([event["pid"] for event in done.events("processes.left")], [holder.pid])

    def test_the_result_is_written_again_when_all_have_ended(self):
        began, process, holder = self.start_held(self.job(*self.steps(), max_runtime_seconds=TIMEOUT))
        self.assert_complete_in_time(began)
        holder.release()
        done = self.outcome_of(process)
        self.assertEqual((done.exit, done.code), (124, "timeout"))
        if done.events("processes.left"):
            self.skipTest("this machine was too slow to let go in time")
        self.assertNotIn("could not be ended", done.message)
        self.assertEqual(self.journal()[-1]["result"]["failure_message"], done.message)

    def test_after_a_signal(self):
        _, process, holder = self.start_held(self.job(*self.steps()))
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        result = self.assert_complete_in_time(began)
        self.assertIn(f"process {holder.pid} could not be ended", result["failure_message"])
        done = self.outcome_of(process)
        self.assertEqual((done.exit, done.code), (143, "cancelled"))

    def test_far_from_the_deadline(self):
        # A step's own timeout does not hold the job for long.
        began, process, _ = self.start_held(self.job(*self.steps(timeout_seconds=1)))
        done = self.outcome_of(process)
        self.assertEqual((done.exit, done.statuses), (124, ["success", "timeout", "skipped"]))
        self.assertIn("SIGKILL did not end it", done.steps[1]["error"])
        self.assertLess(time.monotonic() - began, 12 if sba.LONG else 40)


@sba.wants("strace")
class SlowDisk(DeadlineCase):
    """The first fsync takes longer than the rest of the job."""
    SECONDS = TIMEOUT + BOUND + 1

    def start_slow(self, *steps):
        wrapper = sba.strace("fsync", "-f", "-e", f"inject=fsync:delay_enter={self.SECONDS * 1000000}:when=1")
        return self.start(self.job(*steps, max_runtime_seconds=TIMEOUT), wrapper=wrapper)

    def check(self, process, exit_status, code):
        done = self.outcome_of(process)
        self.assertEqual((done.exit, done.code), (exit_status, code), done.stderr)
        self.assertGreater(done.events("result.slow")[0]["duration_ms"], 1000)

    def test_past_the_deadline_and_from_before_it_on(self):
        began, past, before = time.monotonic(), self.fresh(), self.fresh()
        processes = past.start_slow(self.sh("sleep 600")), before.start_slow(self.sh("echo one"))
        self.assertEqual(past.assert_complete_in_time(began)["failure_code"], "timeout")
        self.assertEqual(before.assert_complete_in_time(began)["failure_code"], None)
        self.assertEqual([process.poll() for process in processes], [None, None])
        past.check(processes[0], 124, "timeout")
        before.check(processes[1], 0, None)


sba.main(__name__)
