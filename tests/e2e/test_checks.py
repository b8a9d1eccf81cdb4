# SPDX-License-Identifier: Apache-2.0
"""Checks of acceptance criteria, which the runner runs itself; and the status that a model gives `finish`."""
import datetime
import json
import re
import signal

import sba
from agent_case import FORMATS, LIST, AgentCase, call, finish, runs, writes
from sba import timeless
from servers import model


def criterion(words, **check):
    return {"criterion": words, "check": check} if check else words


class CheckCase(AgentCase):
    def direct(self, *criteria, steps=(), **fields):
        return self.job(*steps, context={"acceptance_criteria": list(criteria)}, **fields)

    def agent(self, *criteria, **fields):
        return self.agent_job(context={"acceptance_criteria": list(criteria)}, **fields)

    def assert_failed(self, outcome, code="acceptance_unmet", exit=1):
        sba.result_validator().validate(outcome.result)
        return self.assert_end(outcome, exit, code)

    def assert_passed(self, outcome):
        return self.assert_failed(outcome, None, 0)

    @staticmethod
    def steps(result):
        return [(step["id"], step.get("check"), step["status"]) for step in result["steps"]]


class Killed(CheckCase):
    environment = {"SBA_CONFINE": "off"}

    def test_in_a_check_at_the_end_of_an_agent_that_gave_up(self):
        # The next run's model works first: what it does in the check's place is not what was interrupted.
        job = self.agent(criterion("it works", shell="test -e killed && exit; touch killed; sleep 60"))
        gave_up = finish("no", status="failed")
        first = self.server(writes("a", "x"), gave_up)
        self.run_and_kill(job, env={"OLLAMA_BASE_URL": first.url})
        second = self.server(call("run_command", shell="echo more"), finish("done", status="done"))
        outcome = self.assert_passed(self.run_agent(second, "--resume", job=job))
        self.assertEqual([step["type"] for step in outcome.steps], ["write_file", "run_command", "run_command"])
        self.assertEqual([(step["status"], step.get("check"), step["output"]) for step in outcome.steps[1:]],
                         [("success", None, "more\n"), ("success", 1, "")])


class Direct(CheckCase):
    def test_they_run_after_the_last_step_and_say_of_each_criterion(self):
        outcome = self.assert_failed(self.run_job(self.direct(
            "nobody looks", criterion("a is there", shell="test -e a"),
            criterion("b is there", argv=["test", "-e", "b"]), steps=[self.write_file("a", "x")])))
        result = outcome.result
        self.assertEqual(self.steps(result),
                         [("step-1", None, "success"), ("check-2", 2, "success"), ("check-3", 3, "failure")])
        self.assertEqual(result["acceptance"], [
            {"criterion": "nobody looks", "met": None, "evidence": "", "verified_by": None},
            {"criterion": "a is there", "met": True, "evidence": "check-2: `test -e a` ended with exit code 0",
             "verified_by": "check"},
            {"criterion": "b is there", "met": False,
             "evidence": "check-3: the command `test -e b` ended with exit code 1", "verified_by": "check"}])
        self.assertIn('the criterion "b is there" is not met: check-3', result["failure_message"])
        self.assertEqual([(item["title"], item["status"], item["note"]) for item in result["todo"]["items"][:3]], [
            ("nobody looks", "dropped", "not checked"), ("a is there", "done", None),
            ("b is there", "pending", "check-3: the command `test -e b` ended with exit code 1")])
        began = [(line["id"], line.get("check")) for line in outcome.events("step.started")]
        self.assertEqual(began, [("step-1", None), ("check-2", 2), ("check-3", 3)])
        journal = self.journal()
        self.assertEqual([line.get("check") for line in journal if line["event"] == "step.started"], [None, 2, 3])
        self.assertEqual([line["entry"] for line in journal if line["event"] == "step.finished"], result["steps"])

    def test_they_have_the_environment_of_the_runners_start_whatever_steps_leave(self):
        # A step's own variables, what it exports, and what it writes into files that shells read at their start.
        leave = ('mkdir -p bin; printf "#!/bin/sh\\n" | tee bin/env > bin/sort; chmod +x bin/*; '
                 'export PATH="$PWD/bin:$PATH" LEFT=1; for f in .profile .bashrc .bash_profile .shrc; do '
                 'echo "export LEFT=1 PATH=$PWD/bin:$PATH" > $HOME/$f; done; cd bin; umask 0; ulimit -n 17')
        steps = [self.sh(leave, env={"PATH": "/nowhere:/usr/bin:/bin", "ENV": "x", "A": "b"}), self.sh("unset HOME")]
        home = self.folder(self.workspace / "home")
        differ = "^CYNODE_\\(RUN\\|DEADLINE\\|REPORT\\)="
        check = criterion("c", shell=f'env | grep -v "{differ}" | sort; pwd; umask; ulimit -n')
        seen = []
        for before in ([], steps):
            outcome = self.run_job(self.direct(check, steps=before), env={"HOME": str(home), "LEFT_ALONE": "yes"})
            self.assert_passed(outcome)
            seen.append(outcome.steps[-1]["output"])
        self.assertIn("LEFT_ALONE=yes\n", seen[0])
        self.assertEqual(seen[0], seen[1])

    def test_without_a_check_nothing_is_said_to_be_met(self):
        (self.job_directory / "context").mkdir()
        (self.job_directory / "context" / "acceptance_criteria.md").write_text("- from a file\n")
        for job in (self.job(self.run_command("true")), self.direct("from a file"),
                    self.direct({"criterion": "from a file", "check": None})):
            outcome = self.assert_passed(self.run_job(job))
            self.assertEqual(outcome.acceptance,
                             [{"criterion": "from a file", "met": None, "evidence": "", "verified_by": None}])

    def test_an_id_that_a_step_has_is_not_taken_again(self):
        outcome = self.run_job(self.direct(criterion("c", command="true"),
                                           steps=[{"id": "check-2", "type": "list_tree"}]))
        self.assertEqual([step["id"] for step in outcome.steps], ["check-2", "check-2-1"], outcome.message)

    def test_a_check_that_cannot_start(self):
        outcome = self.assert_failed(self.run_job(self.direct(criterion("c", command="nonesuch"),
                                                              criterion("d", command="true", working_dir="gone"))))
        self.assertEqual(outcome.verdicts, [(False, "check")] * 2)
        self.assertEqual([step["error_code"] for step in outcome.steps], ["not_found"] * 2)

    def test_a_check_that_times_out(self):
        outcome = self.run_job(self.direct(criterion("c", command="sleep", args=["60"], timeout_seconds=0.3),
                                           criterion("d", command="true")))
        self.assert_failed(outcome)
        self.assertEqual(outcome.status, "failure")
        self.assertEqual(self.steps(outcome.result), [("check-1", 1, "timeout"), ("check-2", 2, "success")])
        self.assertEqual(outcome.verdicts, [(False, "check"), (True, "check")])

    def test_a_check_at_the_jobs_deadline(self):
        slow = sba.slowness()
        outcome = self.run_job(self.direct(criterion("c", command="true"), criterion("d", command="sleep", args=["60"]),
                                           criterion("e", command="true"), max_runtime_seconds=2))
        self.assert_failed(outcome, "timeout", 124)
        self.assert_in_time(outcome, 2, slow)
        self.assertEqual(self.steps(outcome.result), [("check-1", 1, "success"), ("check-2", 2, "timeout")])
        self.assertEqual(outcome.verdicts[::2], [(True, "check"), (None, None)])

    def test_a_check_past_max_output_bytes(self):
        flood = "while :; do echo again and again and again; done"
        outcome = self.run_job(self.direct(criterion("c", shell=flood), max_output_bytes=10000))
        self.assert_failed(outcome, "constraint_violation")
        self.assertLessEqual(len(outcome.steps[0]["output"]), 10000)
        self.assertEqual(outcome.verdicts, [(False, "check")])
        outcome = self.assert_passed(self.run_job(self.direct(criterion("c", shell="seq 10000", max_output_bytes=100),
                                                              max_output_bytes=10000)))  # a limit of its own only cuts
        self.assertTrue(outcome.steps[0]["result"]["stdout_truncated"])

    def test_the_report_shows_them(self):
        self.run_job(self.direct("nobody looks", criterion("<c>", shell="echo seen by all"),
                                 criterion("d", command="false")))
        page = sba.run("--report", str(self.result_path)).stdout.decode()
        self.assert_says(page, "not checked", "checked by the runner: check-1: ", "&lt;c&gt;", "$ echo seen by all",
                         "the check of criterion 2")


class AtEveryEnd(CheckCase):
    """Status and failure code stay; what was found is in acceptance."""

    DONE = criterion("done", shell="test -e done")

    def test_after_a_step_that_failed(self):
        steps = [self.sh("touch done; exit 3"), self.write_file("never", "")]
        outcome = self.assert_failed(self.run_job(self.direct("nobody looks", self.DONE, steps=steps)), "step_failed")
        self.assertEqual(self.steps(outcome.result),
                         [("step-1", None, "failure"), ("step-2", None, "skipped"), ("check-3", 2, "success")])
        self.assertEqual(outcome.verdicts, [(None, None), (True, "check")])
        page = sba.run("--report", str(self.result_path)).stdout.decode()
        self.assertIn("Step 1 (step-1, run_command)", page)  # it decided, not the check
        again = self.run_job(self.direct("nobody looks", self.DONE, steps=steps), "--resume")
        self.assertEqual((timeless(again.steps), again.exit), (timeless(outcome.steps), 1))

    def test_after_a_check_that_fails_too(self):
        outcome = self.run_job(self.direct(self.DONE, criterion("more", shell="exit 4"), steps=[self.sh("exit 3")]))
        self.assert_failed(outcome, "step_failed")
        self.assertIn("exit code 3", outcome.message)
        self.assertEqual(outcome.verdicts, [(False, "check")] * 2)

    def test_after_a_timeout_in_time_that_is_kept_for_them_with_the_services_of_earlier_steps(self):
        seconds = min(round(12 * sba.slowness()), 80)  # less than a test waits for the runner
        steps = [self.sh("(while :; do sleep 0.1; done) >/dev/null 2>&1 & echo $! > pid"),
                 self.sh("touch done; trap 'touch asked' TERM; while :; do sleep 0.1; done"),
                 self.write_file("never", "")]
        check = criterion("the service lives", shell="test -d /proc/$(cat pid) && test -e asked && test -e done")
        outcome = self.run_job(self.direct(check, steps=steps, max_runtime_seconds=seconds))
        self.assert_failed(outcome, "timeout", 124)
        self.assertEqual(self.steps(outcome.result), [
            ("step-1", None, "success"), ("step-2", None, "timeout"), ("step-3", None, "skipped"),
            ("check-4", 1, "success")])
        self.assertEqual((outcome.verdicts, outcome.status), ([(True, "check")], "timeout"))
        self.assertIn("the job's time was up while the command", outcome.message)
        self.assertLess(outcome.result["duration_ms"], seconds * 1000)

    def test_what_finds_no_time_says_so(self):
        outcome = self.run_job(self.direct(criterion("c", shell="sleep 60"), criterion("d", command="true"),
                                           steps=[self.sh("sleep 60")], max_runtime_seconds=2))
        self.assert_failed(outcome, "timeout", 124)
        self.assertEqual(outcome.verdicts, [(None, None)] * 2)
        first, second = [one["evidence"] for one in outcome.acceptance]
        self.assertRegex(first, "^check-2: the job's time was up")
        self.assertEqual(second, "not checked: the job's time was up")

    def test_a_signal_leaves_them_out(self):
        job = self.direct(criterion("c", shell="touch checked"), steps=[self.sh("touch up; sleep 60")])
        outcome = self.run_and_signal(job, signal.SIGTERM, (self.workspace / "up").exists, "the step")
        self.assertEqual((outcome.code, outcome.verdicts), ("cancelled", [(None, None)]))
        self.assertEqual(outcome.acceptance[0]["evidence"], "not checked: " + outcome.message)
        self.assertFalse((self.workspace / "checked").exists())

    def test_an_agent_that_did_the_work_and_ends_otherwise(self):
        work = writes("done", "x")
        repeated = call("run_command", shell="exit 1")
        for replies, code in (([work, *[{"content": "I am happy."}] * 3], "agent_gave_up"),
                              ([work, *[repeated] * 4], "agent_stuck"),
                              ([work, finish("no", status="failed")], "agent_gave_up"),
                              ([work, {"status": 400}], "inference_unavailable")):
            outcome, _ = self.run_replies(*replies, job=self.agent("plain", self.DONE))
            with self.subTest(code=code):
                self.assertEqual((outcome.code, outcome.status), (code, "failure"))
                self.assertEqual(outcome.verdicts, [(None, None), (True, "check")])
            (self.workspace / "done").unlink()

    def test_an_agent_whose_time_is_up(self):
        job = self.agent(self.DONE, max_runtime_seconds=min(60, round(10 * sba.slowness())))
        outcome, server = self.run_replies(runs("touch done; sleep 600"), job=job)
        self.assert_failed(outcome, "timeout", 124)
        self.assertEqual(outcome.verdicts, [(True, "check")])
        (self.workspace / "done").unlink()
        server = self.server(finish("done"), writes("done", ""), finish("done"))
        again = self.assert_passed(self.run_agent(server, "--resume", job=job))  # the check of the end ran again
        self.assertEqual(again.verdicts, [(True, "check")])

    def test_commands_are_told_when_they_end(self):
        tell = self.sh('echo $((CYNODE_DEADLINE - $(date +%s)))', env={"CYNODE_DEADLINE": "1"})
        short = self.sh('echo $((CYNODE_DEADLINE - $(date +%s)))', timeout_seconds=20)
        for criteria, at_most in (((), 100), ((criterion("c", command="true"),), 88)):
            outcome = self.run_job(self.direct(*criteria, steps=[tell, short], max_runtime_seconds=100))
            first, second = [int(step["output"]) for step in outcome.steps[:2]]
            self.assertTrue(at_most - 40 < first <= at_most and 0 < second <= 20, (first, second))

    def test_checks_and_models_are_told_the_same(self):
        tell = "echo $CYNODE_DEADLINE"
        job = self.agent(criterion("c", shell=tell), max_runtime_seconds=100)
        outcome, server = self.run_replies(runs(tell), finish("ok"), job=job)
        command, check = [int(step["output"]) for step in outcome.steps]
        begun = datetime.datetime.fromisoformat(outcome.steps[0]["started_at"].replace("Z", "+00:00")).timestamp()
        told = [int(re.findall(r"Time left: (\d+) seconds", json.dumps(body["messages"]))[-1])
                for body in server.chats()]
        least, most = told[1] - 2, told[0] + 1  # they are rounded
        self.assertTrue(least <= command - begun <= most <= 90, (told, command - begun))
        self.assertAlmostEqual(check - command, 11, delta=2)  # a check has what was kept, too

    def test_silence_ends_a_check_and_a_models_command(self):
        silent = {"shell": "echo begun; sleep 600", "idle_timeout_seconds": 3}
        job = self.agent(criterion("c", **silent))
        outcome, _ = self.run_replies(call("run_command", **silent), finish("ok"), job=job)
        self.assertEqual([(step["status"], step["error_code"], step["output"]) for step in outcome.steps[:2]],
                         [("timeout", "idle_timeout", "begun\n")] * 2)
        self.assertEqual(outcome.verdicts, [(False, "check")])


class FinishAtOnce(CheckCase):
    def test_the_checks_decide_where_there_are_some(self):
        check = criterion("done", shell="echo looked; test -e done || exit 7")
        self.put("done")
        outcome, server = self.run_replies(finish("it was done"), job=self.agent(check))
        self.assert_passed(outcome)
        self.assertEqual(len(server.chats()), 1)
        (self.workspace / "done").unlink()
        outcome, server = self.run_replies(finish("done"), writes("done", ""), finish("now"), job=self.agent(check))
        self.assert_passed(outcome)
        told = self.tool_answers(server, 1)[0]
        self.assert_says(told, "test -e done || exit 7", "exit code 7", "looked")

    def test_after_calls_that_could_not_be_carried_out_it_does_not_count(self):
        self.put("a", "x = 1\n")
        wrong = [call("nonesuch", x=1), call("read_file", paht="a"),
                 call("replace_in_file", path="a", old_text="x", new_text="x")]
        outcome, server = self.run_replies(*wrong, finish("done"), finish("done"), {"content": "never asked"})
        self.assert_failed(outcome, "agent_gave_up")
        self.assertEqual((len(server.chats()), outcome.answer), (5, "done"))
        self.assert_says(self.told(server, 3), "text_unchanged", "nothing would change in a", "1  x = 1")
        self.assertIn("None of your calls could be carried out", self.told(server, 4))
        outcome, server = self.run_replies(*wrong, finish("done"), LIST, finish("done"))
        self.assert_passed(outcome)


class Resumed(CheckCase):
    def each_cut(self, first):
        """Cuts the journal in each line from that number on: yields how many are whole, and these."""
        lines = self.journal_file.read_bytes().splitlines(keepends=True)
        for count in range(first, len(lines) + 1):
            self.journal_file.write_bytes(b"".join(lines[:count]) + (lines[count][:40] if count < len(lines) else b""))
            yield count, lines[:count]

    def test_a_direct_job_whose_journal_is_cut_anywhere(self):
        job = self.direct("plain", criterion("c", shell="echo c >> ran"), criterion("d", shell="echo d >> ran; exit 1"),
                          steps=[self.run_command("true")])
        whole = self.assert_failed(self.run_job(job))
        for count, _ in self.each_cut(1):
            self.put("ran")
            again = self.assert_failed(self.run_job(job, "--resume"))
            for name in ("steps", "acceptance", "failure_message"):
                self.assertEqual(timeless(again.result[name]), timeless(whole.result[name]), count)
            self.assertEqual(self.text("ran").split(), ["c", "d"], count)

    def test_an_agents_job_whose_journal_is_cut_anywhere(self):
        job = self.agent(criterion("a is there", shell="echo c >> ran; test -e a"), criterion("d", command="true"))
        replies = [runs("true"), finish("done"), writes("a", "x"), finish("really done")]
        whole = self.assert_passed(self.run_agent(self.server(*replies), job=job))
        for count, lines in self.each_cut(2):
            self.put("ran")
            (self.workspace / "a").unlink(missing_ok=True)
            if any(b'"step.finished"' in line and b'"write_file"' in line for line in lines):
                self.put("a", "x")
            server = self.server(*replies[sum(b'"event":"model.exchange"' in line for line in lines):])
            again = self.run_agent(server, "--resume", job=job)
            last = [line for line in lines if b'"step.session"' not in line][-1]
            if b'"step.started"' in last and b'"check"' not in last:
                continue  # of a step that was interrupted, the model is told
            self.assert_passed(again)
            self.assertEqual(timeless(again.steps), timeless(whole.steps), count)
            self.assertEqual(again.acceptance, whole.acceptance)
            done = sum(b'"step.finished"' in line and b'"check":1' in line for line in lines)
            self.assertEqual(len(self.text("ran").split()), 2 - done, count)

    def test_a_replay_runs_them_and_is_exact(self):
        job = self.agent(criterion("a is there", shell="ls; test -e a"), criterion("b", command="true"))
        replies = [LIST, finish("done"), writes("a", "x"), finish("done", ("2", True, "step-1"))]
        whole = self.assert_passed(self.run_agent(self.server(*replies), job=job))
        recording = str(self.recording())
        (self.workspace / "a").unlink()
        again = self.assert_passed(self.run_job(job, "--replay", recording))
        self.assertEqual(timeless(again.result), timeless(whole.result))
        again = self.run_job(job, "--replay", recording)  # with a there, the first check passes
        self.assertEqual(again.code, "internal_error" if again.exit else None)


class Agents(CheckCase):
    A = criterion("a is there", shell="echo looking for a; test -e a")

    def test_a_passing_check_is_met_whatever_the_model_says(self):
        for entries in ((), [("a is there", False, "I could not")], [("a is there", True, "trust me")]):
            for form in FORMATS:
                server = self.server(writes("a", "x"), finish("done", *entries), {"content": "never asked"})
                outcome = self.assert_passed(self.run_agent(server, form=form, job=self.agent(self.A)))
                self.assertEqual(self.steps(outcome.result), [("step-1", None, "success"), ("check-2", 1, "success")])
                self.assertEqual(outcome.acceptance, [{
                    "criterion": "a is there", "met": True, "verified_by": "check",
                    "evidence": "check-2: `echo looking for a; test -e a` ended with exit code 0"}])
                self.assertEqual(outcome.result["todo"]["items"][0]["status"], "done")
                self.assertEqual(len(server.chats()), 2)
                (self.workspace / "a").unlink()

    def test_a_failing_check_goes_back_to_the_model(self):
        server = self.server(LIST, finish("done", ("a is there", True, "step-1")), writes("a", "x"), finish("done"))
        outcome = self.assert_passed(self.run_agent(server, job=self.agent(self.A, criterion("d", command="true"))))
        self.assertEqual(self.steps(outcome.result),
                         [("step-1", None, "success"), ("check-2", 1, "failure"), ("check-3", 2, "success"),
                          ("step-4", None, "success"), ("check-5", 1, "success"), ("check-6", 2, "success")])
        told = server.chats()[2]["messages"][-1]["content"]
        self.assert_says(told, "not finished: 1 of 2 checks failed", "[check-2]", "ended with exit code 1",
                         "looking for a\n", "[x] 2 d", "[ ] 1 a is there (check-2: ")
        self.assertEqual([item["note"] for item in outcome.result["todo"]["items"]], [None, None])

    def test_a_failing_check_goes_back_three_times(self):
        server = self.server(LIST, *[finish("done", ("a is there", True, "step-1"))] * 4, {"content": "never asked"})
        outcome = self.assert_failed(self.run_agent(server, job=self.agent(self.A)))
        self.assertEqual((len(server.chats()), len(outcome.steps)), (5, 5))
        self.assertEqual((outcome.verdicts, outcome.answer), ([(False, "check")], "done"))
        self.assertIn("check-5", outcome.message)

    def test_the_prompt_says_what_is_checked(self):
        server = self.server(model.ending())
        self.run_agent(server, job=self.agent("plain", self.A))
        self.assertIn("1. plain\n2. a is there (checked by the runner with `echo looking for a; test -e a`)",
                      server.chats()[0]["messages"][1]["content"])

    def test_a_criterion_without_one_still_needs_evidence_first(self):
        server = self.server(writes("a", "x"), finish("done"), finish("done", ("2", True, "step-1")))
        outcome = self.assert_passed(self.run_agent(server, job=self.agent(self.A, "it is good")))
        self.assertEqual(outcome.verdicts, [(True, "check"), (True, "model")])
        self.assertEqual(len(outcome.steps), 2)  # no check ran while evidence was missing

    def test_the_output_of_an_agents_check_is_cut(self):
        self.assert_passed(self.run_agent(self.server(LIST, finish("done")),
                                          job=self.agent(criterion("c", shell="seq 100000"), max_output_bytes=1000)))


class Validation(CheckCase):
    def test_mistakes_are_named_with_their_places(self):
        criteria = [{"criterion": "c", "check": {"command": "x", "shell": "y"}},
                    {"criterion": "", "check": {"comand": "x"}}, {"check": {}}, 7,
                    {"criterion": "c", "check": "make test"}, {"criterion": "c", "check": {"command": "a\u0000b"}},
                    {"criterion": "c", "check": {"command": "x", "timeout_seconds": 0}}, {"criterion": "c", "more": 1}]
        for job in (self.direct(*criteria), self.agent(*criteria)):
            outcome = self.assert_end(self.run_job(job), 2, "schema_validation")
            asked = sba.run("--validate", str(self.job_directory / "job.json"))
            self.assertEqual(asked.returncode, 2)
            for said in (outcome.message, asked.stdout.decode()):
                for place in ("0/check: ", "1/criterion: ", "1/check/comand: ", "2/criterion: ", "3: ", "4/check: ",
                              "5/check/command: ", "6/check/timeout_seconds: ", "7/more: "):
                    self.assertIn("/context/acceptance_criteria/" + place, said)


class Status(CheckCase):
    def finished(self, status, *criteria, entries=()):
        server = self.server(runs("true"), finish("my reason", *entries, status=status), {"content": "never asked"})
        return server, self.run_agent(server, job=self.agent(*criteria))

    def test_what_models_write_for_done(self):
        for status in ("done", "success", "Success", " completed ", "ok", True, None):
            server, outcome = self.finished(status)
            self.assert_passed(outcome)
            self.assertEqual((outcome.answer, len(server.chats())), ("my reason", 2), status)

    def test_what_they_write_for_failed(self):
        for status in ("failed", "FAILURE", "error", "blocked", False):
            server, outcome = self.finished(status)
            self.assert_failed(outcome, "agent_gave_up")
            self.assertEqual(outcome.answer, "my reason")
            self.assertIn("the model gave up: my reason", outcome.message)
            self.assertEqual(len(server.chats()), 2)

    def test_another_word_is_an_answer_to_the_model(self):
        server = self.server(LIST, finish("half of it", status="in_progress"), finish("all of it"))
        outcome = self.assert_passed(self.run_agent(server))
        self.assertIn("in_progress", self.told(server, 2))
        self.assertEqual(outcome.answer, "all of it")

    def test_giving_up_keeps_what_the_model_could_prove(self):
        check = criterion("checked", shell="touch checked")
        _, outcome = self.finished("failed", "first", "second", check,
                                   entries=[("first", True, "step-1"), ("second", False, "it cannot be had")])
        self.assert_failed(outcome, "agent_gave_up")
        self.assertEqual(outcome.verdicts, [(True, "model"), (False, "model"), (True, "check")])


sba.main(__name__)
