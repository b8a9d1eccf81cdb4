# SPDX-License-Identifier: Apache-2.0
"""Steps whose failure is tolerated (on_failure: continue), and steps that run also after one that failed (always)."""
import json
import pathlib
import signal

import sba
from sba import SandboxCase

KILL_ONCE = "test -e killed || { touch killed; sleep 60; }"


def tolerated(step, **more):
    return {**step, "on_failure": "continue", **more}


def always(step, **more):
    return {**step, "always": True, **more}


class OnFailureCase(SandboxCase):
    environment = {"SBA_CONFINE": "off"}

    def said(self, word, status=0):
        return self.sh(f"echo {word} >>said; exit {status}")

    def words(self):
        path = self.workspace / "said"
        return path.read_text().split() if path.exists() else []

    def ran(self, *steps, check=None, **fields):
        if check:
            fields["context"] = {"acceptance_criteria": [{"criterion": "c", "check": check}]}
        outcome = self.run_steps(*steps, **fields)
        sba.result_validator().validate(outcome.result)
        return outcome

    @staticmethod
    def tolerated_steps(outcome):
        return [step["id"] for step in outcome.steps if step.get("tolerated")]

    def assert_kept(self, outcome, *statuses):
        self.assertEqual(outcome.statuses, list(statuses), outcome.result)


class Continue(OnFailureCase):
    def test_its_failure_is_not_the_jobs_and_the_checks_decide(self):
        for check, code in (({"command": "true"}, None), ({"command": "false"}, "acceptance_unmet")):
            outcome = self.ran(tolerated(self.said("worker", 1)), self.said("next"), check=check)
            self.assert_end(outcome, 1 if code else 0, code)
            self.assert_kept(outcome, "failure", "success", "failure" if code else "success")
            self.assertEqual(self.tolerated_steps(outcome), ["step-1"])
            self.assertEqual((outcome.steps[0]["exit_code"], outcome.steps[0]["error_code"]), (1, "step_failed"))
            log = outcome.events("step.finished")
            self.assertEqual([(line["level"], line.get("tolerated")) for line in log[:2]],
                             [("warning", True), ("info", None)])
        self.assertEqual(outcome.result["todo"]["items"][1]["status"], "dropped")

    def test_signals_time_limits_files_and_what_cannot_start(self):
        outcome = self.assert_end(self.ran(
            tolerated(self.sh("kill -SEGV $$")), tolerated(self.sh("echo a; sleep 60", timeout_seconds=0.2)),
            tolerated(self.sh("echo b; sleep 60", idle_timeout_seconds=0.2)), tolerated(self.read_file("nothing")),
            tolerated(self.run_command("no-such-program")), tolerated(self.write_file("../out", "x"))), 0)
        self.assert_kept(outcome, "failure", "timeout", "timeout", "failure", "failure", "failure")
        self.assertEqual([step["error_code"] for step in outcome.steps],
                         ["step_failed", "timeout", "idle_timeout", "not_found", "not_found", "path_escape"])
        self.assertEqual(len(self.tolerated_steps(outcome)), 6)

    def test_limits_of_the_job_its_time_and_a_signal_are_not_tolerated(self):
        loud = tolerated(self.sh("head -c 5000 /dev/zero | tr '\\0' x"))
        outcome = self.ran(loud, self.said("never"), max_output_bytes=1000)
        self.assert_end(outcome, 1, "constraint_violation")
        slow = self.ran(tolerated(self.sh("sleep 60")), self.said("never"), max_runtime_seconds=1)
        self.assert_end(slow, 124, "timeout")
        job = self.job(tolerated(self.sh("touch begun; sleep 60")), self.said("never"))
        cancelled = self.run_and_signal(job, signal.SIGTERM, (self.workspace / "begun").exists, "the step")
        self.assert_end(cancelled, 143, "cancelled")
        for outcome in (outcome, slow, cancelled):
            self.assertEqual((self.tolerated_steps(outcome), outcome.statuses[1]), ([], "skipped"))
        self.assertEqual(self.words(), [])

    def test_the_changes_of_a_file_step_that_fails_are_taken_back(self):
        self.put("a", "one\n")
        self.put("b", "two\n")
        diff = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-other\n+2\n"
        outcome = self.ran(tolerated(self.apply_diff(diff)), self.run_command("cat", args=["a", "b"]))
        self.assert_end(outcome, 0)
        self.assertEqual(outcome.steps[1]["output"], "one\ntwo\n")


class Always(OnFailureCase):
    def test_it_runs_in_its_place_once_and_after_a_failure_too(self):
        outcome = self.assert_end(self.ran(
            always(self.said("first")), self.said("fails", 3), self.said("never"), always(self.said("logs")),
            self.said("never"), always(self.said("more", 4)), always(tolerated(self.said("last", 5))),
            check={"command": "true"}), 1, "step_failed", "step 2 (step-2, run_command)")
        self.assert_kept(outcome, "success", "failure", "skipped", "success", "skipped", "failure", "failure",
                         "success")
        self.assertEqual(self.words(), ["first", "fails", "logs", "more", "last"])
        self.assertEqual(self.tolerated_steps(outcome), ["step-7"])
        self.assertEqual(outcome.acceptance[0]["met"], True)
        self.assertEqual([step["index"] for step in outcome.steps], list(range(8)))
        self.assertEqual([line["entry"] for line in self.journal() if line["event"] == "step.finished"], outcome.steps)

    def test_its_own_failure_is_the_jobs_where_the_job_had_none(self):
        outcome = self.ran(self.said("a"), always(self.said("b", 1)), self.said("never"), always(self.said("c", 2)))
        self.assert_end(outcome, 1, "step_failed", "step 2 (step-2")
        self.assertEqual(self.words(), ["a", "b", "c"])

    def test_after_the_jobs_time_it_has_what_is_kept_and_leaves_half_to_the_checks(self):
        alive = self.sh("kill -0 $(cat pid) && echo the service lives")
        hangs = self.sh("trap '' TERM; echo always >>said; sleep 900")
        seconds = round(10 * min(sba.slowness(), 5))
        outcome = self.ran(
            self.sh("sleep 900 & echo $! >pid"), self.sh("sleep 900"), self.said("never"), always(alive), always(hangs),
            always(self.said("late")), check={"shell": "kill -0 $(cat pid) && echo check >>said"},
            max_runtime_seconds=seconds)
        self.assert_end(outcome, 124, "timeout", "step 2 (step-2, run_command): the job's time was up")
        self.assert_kept(outcome, "success", "timeout", "skipped", "success", "timeout", "skipped", "success")
        self.assertEqual(self.words(), ["always", "check"])
        self.assertEqual(outcome.acceptance[0]["met"], True)
        self.assertLess(outcome.result["duration_ms"], (seconds + 10) * 1000)

    def test_without_checks_it_has_the_rest_of_the_time_and_is_ended_with_the_job(self):
        hangs = always(self.sh("trap '' TERM; echo begun >>said; while :; do sleep 60; done"))
        seconds = round(6 * min(sba.slowness(), 5))
        outcome = self.ran(self.sh("sleep 900"), hangs, always(self.said("late")), max_runtime_seconds=seconds)
        self.assert_end(outcome, 124, "timeout")
        self.assert_kept(outcome, "timeout", "timeout", "skipped")
        self.assertEqual(self.words(), ["begun"])
        self.assertLess(outcome.result["duration_ms"], (seconds + 15) * 1000)

    def test_what_it_is_told_of_its_time(self):
        told = self.sh("echo $((CYNODE_DEADLINE - $(date +%s)))")
        for check, seconds in ((None, (36, 40)), ({"command": "true"}, (34, 38))):
            outcome = self.ran(told, always(told), check=check, max_runtime_seconds=40)
            own, its = (int(step["output"]) for step in outcome.steps[:2])
            self.assertLessEqual(own, 36)
            self.assertGreater(its, own)
            self.assertLessEqual(its, seconds[1])

    def test_after_a_signal_it_does_not_run_and_one_during_it_ends_it(self):
        job = self.job(self.sh("touch begun; sleep 60"), always(self.said("never")))
        outcome = self.run_and_signal(job, signal.SIGTERM, (self.workspace / "begun").exists, "the step")
        self.assert_end(outcome, 143, "cancelled")
        self.assert_kept(outcome, "failure", "skipped")
        job = self.job(self.said("a"), always(self.sh("touch in-it; sleep 60")), always(self.said("never")))
        outcome = self.run_and_signal(job, signal.SIGTERM, (self.workspace / "in-it").exists, "the last step")
        self.assert_end(outcome, 143, "cancelled")
        self.assert_kept(outcome, "success", "failure", "skipped")
        self.assertEqual(self.words(), ["a"])


class Hostile(OnFailureCase):
    def test_an_always_step_that_floods_or_leaves_processes_changes_nothing(self):
        flood = always(self.sh("yes | head -c 100000"))
        leaves = "(trap '' TERM HUP; sleep 60) & echo $! >pid; setsid sleep 60 & echo $! >daemon; exit 9"
        outcome = self.ran(self.said("a", 1), flood, always(self.sh(leaves)), always(self.said("last")),
                           check={"command": "true"}, max_output_bytes=1000)
        self.assert_end(outcome, 1, "step_failed")
        self.assertEqual([step.get("error_code") for step in outcome.steps],
                         ["step_failed", "constraint_violation", "step_failed", None, None])
        self.assertIn("step 1 (", outcome.message)
        for name in ("pid", "daemon"):
            pid = int((self.workspace / name).read_text())
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists(), name)

    def test_a_signal_in_an_always_step_leaves_the_first_failure(self):
        job = self.job(self.said("a", 1), always(self.sh("touch in-it; sleep 60")), always(self.said("never")),
                       context={"acceptance_criteria": [{"criterion": "c", "check": {"command": "true"}}]})
        for number in (signal.SIGTERM, signal.SIGSEGV):
            outcome = self.run_and_signal(job, number, (self.workspace / "in-it").exists, "the second step")
            sba.result_validator().validate(outcome.result)
            self.assertEqual(outcome.code, "step_failed", outcome.result)
            self.assert_kept(outcome, "failure", "failure", "skipped")
            self.assertIn("step 1 (step-1", outcome.message)
            self.assertEqual(outcome.acceptance[0]["met"], None)
            (self.workspace / "in-it").unlink()
        self.assertEqual(self.words(), ["a", "a"])


class Resume(OnFailureCase):
    def test_after_a_kill_in_each_step_the_job_ends_as_without_one(self):
        # The steps with the word of each; a kill in one of them, and then the whole again.
        def steps(killed=None):
            def one(word, status=0):
                kill = KILL_ONCE + "; " if word == killed else ""
                return self.sh(f"{kill}echo {word}; exit {status}")
            return [tolerated(one("a", 1)), always(one("b")), one("c"), always(tolerated(one("d", 4))), one("e", 5),
                    one("f"), always(one("g", 6)), always(one("h"))]
        check = {"context": {"acceptance_criteria": [{"criterion": "c", "check": {"shell": "echo check"}}]}}

        def what(outcome):
            names = "id", "status", "tolerated", "output", "exit_code"
            return [[step.get(name) for name in names] for step in outcome.steps]
        wanted = self.run_steps(*steps(), **check)
        self.assert_kept(wanted, "failure", "success", "success", "failure", "failure", "skipped", "failure", "success",
                         "success")
        for killed in "abcdegh":
            with self.subTest(killed=killed):
                job = self.job(*steps(killed), **check)
                self.assertEqual(self.run_and_kill(job).exit, -9)
                outcome = self.run_job(job, "--resume")
                sba.result_validator().validate(outcome.result)
                self.assertEqual((outcome.code, what(outcome)), (wanted.code, what(wanted)))
                self.assertIn("step 5 (step-5, run_command)", outcome.message)
                page = sba.run("--report", self.result_path)
                self.assertEqual((page.returncode, page.stderr), (0, b""))
            (self.workspace / "killed").unlink()

    def test_a_tolerated_failure_is_kept_and_an_always_step_runs_again(self):
        job = self.job(tolerated(self.said("worker", 1)), always(self.said("in-place")),
                       self.sh("echo b >>said; test -e fixed"), self.said("c"), always(self.said("logs")))
        outcome = self.assert_end(self.run_job(job), 1, "step_failed")
        (self.workspace / "fixed").touch()
        outcome = self.assert_end(self.run_job(job, "--resume"), 0)
        self.assert_kept(outcome, "failure", "success", "success", "success", "success")
        self.assertEqual(self.tolerated_steps(outcome), ["step-1"])
        self.assertEqual(self.words(), ["worker", "in-place", "b", "logs", "b", "c", "logs"])

    def test_killed_in_a_step_that_runs_always_after_a_failure(self):
        logs = always(self.sh(f"echo logs >>said; {KILL_ONCE}"))
        job = self.job(self.said("a"), self.sh("echo b >>said; test -e fixed"), self.said("c"), logs)
        killed = self.run_and_kill(job)
        self.assertEqual((killed.exit, killed.code), (-9, "interrupted"))
        for exit_status, code in ((1, "step_failed"), (0, None)):
            outcome = self.run_job(job, "--resume")
            sba.result_validator().validate(outcome.result)
            self.assert_end(outcome, exit_status, code)
            (self.workspace / "fixed").touch()
        self.assertEqual(self.words(), ["a", "b", "logs", "b", "logs", "b", "c", "logs"])

    def test_in_an_edited_job_they_are_no_difference(self):
        job = self.job(tolerated(self.said("a", 1)), self.said("b"), self.sh("test -e fixed"), self.said("logs"))
        self.assert_end(self.run_job(job), 1, "step_failed")
        job["steps"][0].pop("on_failure")
        job["steps"][1]["always"] = True
        job["steps"][2]["on_failure"] = "continue"
        outcome = self.assert_end(self.run_job(job, "--resume"), 0)
        self.assertEqual(self.tolerated_steps(outcome), ["step-1", "step-3"])
        self.assertEqual(self.words(), ["a", "b", "logs"])

    def test_a_job_that_only_tolerates_is_over(self):
        job = self.job(tolerated(self.said("a", 1)))
        first = self.run_job(job)
        self.assertEqual(self.run_job(job, "--resume").result, first.result)
        self.assertEqual(self.words(), ["a"])

    def test_the_end_by_exec_knows_what_was_tolerated_and_skips_the_rest(self):
        job = self.job(tolerated(self.said("a", 1)), self.sh("touch begun; sleep 60"), always(self.said("logs")))
        outcome = self.run_and_signal(job, signal.SIGSEGV, (self.workspace / "begun").exists, "the second step")
        sba.result_validator().validate(outcome.result)
        self.assert_end(outcome, 1, "internal_error")
        self.assert_kept(outcome, "failure", "failure", "skipped")
        self.assertEqual(self.tolerated_steps(outcome), ["step-1"])


class Refused(OnFailureCase):
    def test_in_an_agents_job_and_what_is_neither(self):
        def mistakes(job):
            path = self.put("job/job.json", json.dumps(job).encode())
            done = sba.run("--validate", path)
            self.assertEqual(done.returncode, 2, done.stdout)
            return done.stdout.decode()
        agent = self.job(tolerated(self.said("a")), always(self.said("b")), execution_mode="agent_inference",
                         inference={"allowed_models": ["m"]})
        found = mistakes(agent)
        for pointer in ("/steps/0/on_failure", "/steps/1/always"):
            self.assertIn(pointer + ": is of direct jobs", found)
        found = mistakes(self.job({**self.said("a"), "on_failure": "ignore"}, {**self.said("b"), "always": "yes"}))
        self.assertIn("/steps/0/on_failure: expected one of \"stop\" or \"continue\"", found)
        self.assertIn("/steps/1/always: expected true or false", found)
        outcome = self.ran({**self.said("a", 1), "on_failure": None, "always": None}, self.said("never"))
        self.assert_kept(outcome, "failure", "skipped")


class Reports(OnFailureCase):
    def test_a_reader_sees_what_was_tolerated(self):
        job = self.job(tolerated(self.said("a", 1)), self.said("b", 2), always(self.said("c", 3)))
        told = "3 steps: 3 failed; tolerated: 1"
        for more in ((), ("--resume",)):
            (line,) = self.run_job(job, *more).events("job.finished")
            self.assertEqual((line["outcomes"], line["tolerated"]), ({"failure": 3}, 1))
        outcome = self.run_job(job, "--log-format", "text")
        self.assert_says(outcome.stderr, b"tolerated: the command", told.encode())
        page, markdown, junit = (sba.run("--report", self.result_path, "--format", form).stdout.decode()
                                 for form in ("html", "markdown", "junit"))
        self.assert_says(page, "failed, which is tolerated", told, 'href="#s2">Step 2 (step-2, run_command) failed')
        self.assertIn("| ! | `run_command step-1` |", markdown)
        self.assert_says(junit, 'failures="2" errors="0" skipped="1"', '<skipped message="tolerated: ')


sba.main(__name__)
