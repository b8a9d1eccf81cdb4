# SPDX-License-Identifier: Apache-2.0
"""What a worker says in the file that CYNODE_REPORT names: the result's final answer and inference, as a claim."""
import json
import pathlib
import signal

import sba
from agent_case import AgentCase, finish, runs
from sba import SandboxCase

FULL = {"answer": "all done", "model": "m-1", "prompt_tokens": 1200, "completion_tokens": 34, "cost_usd": 0.25}
CLAIMED = {"model": "m-1", "prompt_tokens": 1200, "completion_tokens": 34, "source": "worker", "cost_usd": 0.25}


class ReportCase(SandboxCase):
    environment = {"SBA_CONFINE": "off"}

    def reports(self, report, after="true"):
        text = report if isinstance(report, str) else json.dumps(report)
        return self.sh(f'cat >"$CYNODE_REPORT"; {after}', stdin=text)

    def ran(self, *steps, **fields):
        return self.checked(self.run_steps(*steps, **fields))

    def checked(self, outcome):
        sba.result_validator().validate(outcome.result)
        return outcome

    def assert_claims(self, outcome, answer, inference):
        result = outcome.result
        found = result.get("final_answer"), result.get("inference"), result["inference_used"]
        self.assertEqual(found, (answer, inference, False))

    def invalid(self, outcome):
        return [(line["step"], line["error"]) for line in outcome.events("worker_report.invalid")]


class Basic(ReportCase):
    def test_it_is_the_results_answer_and_inference(self):
        outcome = self.assert_end(self.ran(self.reports(FULL), self.run_command("true")), 0)
        self.assert_claims(outcome, "all done", CLAIMED)
        self.assertEqual(outcome.steps[0]["result"]["report"], FULL)
        self.assertNotIn("report", outcome.steps[1]["result"])

    def test_the_last_valid_one_counts_also_of_a_step_that_fails(self):
        failing = {**self.reports({"answer": "second", "model": None}, "exit 1"), "on_failure": "continue"}
        outcome = self.ran(self.reports(FULL), failing, self.reports('{"answer": "third", "modell": "m"}'))
        self.assert_end(outcome, 0)
        self.assert_claims(outcome, "second", None)
        (number, error), = self.invalid(outcome)
        self.assertEqual(number, 3)
        self.assertIn('unknown field "modell"; did you mean "model"?', error)

    def test_each_command_has_a_fresh_path_outside_the_workspace_which_goes(self):
        told = self.sh('echo "$CYNODE_REPORT"; test ! -e "$CYNODE_REPORT"')
        outcome = self.ran(told, self.sh('rm -rf "${CYNODE_REPORT%/*}"'), told, self.reports(FULL),
                           {**told, "arguments": {**told["arguments"], "env": {"CYNODE_REPORT": "/nowhere"}}})
        self.assert_end(outcome, 0)
        self.assert_claims(outcome, "all done", CLAIMED)
        paths = [pathlib.Path(outcome.steps[i]["output"].strip()) for i in (0, 2, 4)]
        self.assertEqual(len(set(paths)), 3)
        for path in paths:
            self.assertFalse(path.is_relative_to(self.workspace))
            self.assertFalse(path.parent.exists())

    def test_its_schema(self):
        schema = json.loads(sba.run("--schema", "report").stdout)
        self.assertEqual(list(schema["properties"]), list(FULL))


class Hostile(ReportCase):
    def test_what_is_no_report(self):
        secret = self.put("secret", b'{"answer": "stolen"}')
        cases = {
            f"ln -s {secret} FILE": "link", "mkfifo FILE": "FIFO", "mkdir FILE": "directory",
            "head -c 70000 /dev/zero >FILE": "larger than 65536 bytes", "truncate -s 1T FILE": "larger than",
            "echo '[]' >FILE": "expected an object", """echo '{"cost_usd": NaN}' >FILE""": "NaN",
            """echo '{"answer": "a", "answer": "b"}' >FILE""": "answer",
            ": >FILE": "expected a value", """printf '{"answer": "\\377"}' >FILE""": "UTF-8",
            """echo '{"answer": "a"} x' >FILE""": "the end of the text",
            """echo '{"cost_usd": 1e999}' >FILE""": "too large",
            """echo '{"prompt_tokens": -1}' >FILE""": "tokens", """echo '{"prompt_tokens": 1e300}' >FILE""": "tokens",
            """echo '{"answer": 1}' >FILE""": "/answer: expected a string",
            "head -c 60000 /dev/zero | tr '\\0' '[' >FILE": "nested",
            "echo '{}' >FILE; chmod 0 FILE": "ermission denied",
        }
        outcome = self.ran(self.reports(FULL), *(self.sh(script.replace("FILE", "$CYNODE_REPORT")) for script in cases))
        self.assert_end(outcome, 0)
        self.assert_claims(outcome, "all done", CLAIMED)
        found = dict(self.invalid(outcome))
        self.assertEqual(sorted(found), list(range(2, len(cases) + 2)), found)
        for number, (script, words) in enumerate(cases.items(), 2):
            self.assertIn(words, found[number], script)

    def test_a_process_that_is_left_behind_comes_too_late(self):
        late = """(until test -e now; do sleep 0.05; done; echo '{"answer": "late"}' >$CYNODE_REPORT; touch written) \\
                  >/dev/null 2>&1 &"""
        waits = self.sh("touch now; until test -e written; do sleep 0.05; done")
        outcome = self.assert_end(self.ran(self.reports(FULL), self.sh(late), waits), 0)
        self.assert_claims(outcome, "all done", CLAIMED)

    def test_a_file_that_grows_meanwhile(self):
        grows = """echo '{"answer": "x"}' >$CYNODE_REPORT
                   (while echo ' ' >>$CYNODE_REPORT; do :; done) >/dev/null 2>&1 &"""
        outcome = self.assert_end(self.ran(self.sh(grows), max_runtime_seconds=30), 0)
        self.assertIn(outcome.result.get("final_answer"), ("x", None))

    def test_secrets_are_redacted(self):
        job = self.job(self.reports({"answer": "the key is token-12345678", "model": "token-12345678"}))
        outcome = self.checked(self.run_job(job, env={"SBA_MCP_TOKEN": "token-12345678"}))
        self.assertEqual(outcome.answer, "the key is [redacted]")
        self.assertNotIn("token-12345678", self.result_path.read_text() + self.journal_file.read_text())


class Later(ReportCase):
    def test_resume_and_the_end_by_exec_know_those_of_steps_done(self):
        waits = self.sh("echo $CYNODE_REPORT >path; touch begun; test -e fixed || sleep 60")
        job = self.job(self.reports(FULL), waits)
        for number, code in ((signal.SIGSEGV, "internal_error"), (signal.SIGKILL, "interrupted")):
            outcome = self.run_and_signal(job, number, (self.workspace / "begun").exists, "the second step")
            self.assertEqual(outcome.code, code)
            self.checked(outcome)
            if code == "internal_error":  # what a kill leaves may be 0.2 s old
                self.assert_claims(outcome, "all done", CLAIMED)
            directory = pathlib.Path((self.workspace / "path").read_text().strip()).parent
            self.assertFalse(code == "internal_error" and directory.exists())
            (self.workspace / "begun").unlink()
        (self.workspace / "fixed").touch()
        outcome = self.assert_end(self.checked(self.run_job(job, "--resume")), 0)
        self.assert_claims(outcome, "all done", CLAIMED)
        self.assertFalse(directory.exists())

    def test_a_new_run_removes_what_a_killed_one_left(self):
        job = self.job(self.sh('dirname "$CYNODE_REPORT" >path; touch begun; sleep 60'))
        self.assertEqual(self.run_and_signal(job, signal.SIGKILL, (self.workspace / "begun").exists, "it").exit, -9)
        self.assert_end(self.run_steps(self.run_command("true")), 0)
        self.assertFalse(pathlib.Path((self.workspace / "path").read_text().strip()).exists())

    def test_one_of_a_step_that_runs_again_is_forgotten(self):
        script = """test -e ran || { touch ran; echo '{"answer": "first"}' >$CYNODE_REPORT; exit 1; }"""
        job = self.job(self.sh(script))
        self.assertEqual(self.run_job(job).answer, "first")
        outcome = self.assert_end(self.run_job(job, "--resume"), 0)
        self.assertNotIn("final_answer", outcome.result)

    def test_a_check_and_readers(self):
        says = {"shell": """echo '{"answer": "of a check"}' >$CYNODE_REPORT"""}
        outcome = self.ran(self.reports(FULL), context={"acceptance_criteria": [{"criterion": "c", "check": says}]})
        self.assert_claims(outcome, "all done", CLAIMED)
        self.assertEqual(outcome.steps[1]["result"]["report"], {"answer": "of a check"})
        page, markdown = (sba.run("--report", self.result_path, "--format", form).stdout.decode()
                          for form in ("html", "markdown"))
        junit = sba.run("--report", self.result_path, "--format", "junit").stdout.decode()
        self.assertIn('<property name="inference.cost_usd" value="0.25"/>', junit)
        for words in (page, markdown):
            self.assert_says(words, "all done", "m-1")

    def test_the_page_has_it_before_the_output_which_is_folded(self):
        self.ran({**self.reports(FULL, "seq 2000; exit 1"), "on_failure": "continue"})
        page = sba.run("--report", self.result_path).stdout.decode()
        step = page[page.index('id="s1"'):]
        order = [step.index(words) for words in ("What the worker reports", "$0.25", "<summary>Output, 8", "\n1999\n")]
        self.assertEqual(order, sorted(order))
        self.assertIn("Answer of the worker", page)


class Confined(ReportCase):
    environment = {}

    def test_a_confined_command_can_write_it_one_with_secrets_too(self):
        self.folder(self.root / "home")
        with_secret = self.reports({"answer": "with worker-key-123"})
        with_secret["arguments"]["secrets"] = ["WORKER_KEY"]
        told = {"SBA_SECRETS": "WORKER_KEY", "WORKER_KEY": "worker-key-123", "HOME": str(self.root / "home")}
        outcome = self.assert_end(self.checked(self.run_steps(self.reports(FULL), with_secret, env=told)), 0)
        reports = [step["result"].get("report") for step in outcome.steps]
        self.assertEqual(reports, [FULL, {"answer": "with [redacted]"}])
        self.assertEqual(outcome.answer, "with [redacted]")

    def test_a_workspace_above_the_temporary_files_and_none_at_all(self):
        told = self.sh('echo "${CYNODE_REPORT-none}"')
        outcome = self.run_job(self.job(told), "--workspace", "/tmp")
        self.assertEqual(outcome.exit, 0, outcome.stderr)
        self.assertRegex(outcome.steps[0]["output"], "^(/var/tmp/cynode-sba-|none)")
        outcome = self.run_job(self.job(told), "--workspace", "/")
        self.assertEqual(outcome.steps[0]["output"], "none\n")
        self.assertEqual(len(outcome.events("worker_report.no_place")), 1)

    def test_with_the_result_on_stdout(self):
        job = json.dumps(self.job(self.reports(FULL))).encode()
        done = sba.run("--stdin", "--workspace", self.workspace, stdin=job)
        result = json.loads(done.stdout)
        self.assertEqual((result["final_answer"], result["inference"]), ("all done", CLAIMED))

    def test_a_journal_that_somebody_wrote(self):
        job = self.job(self.reports(FULL), self.sh("exit 1"))
        self.run_job(job)
        lines = self.journal_file.read_text().splitlines()
        at = next(i for i, line in enumerate(lines) if '"step.report"' in line)
        for change, problem in (({"index": 1}, "the step had not begun"), ({"report": {"answer": 1}}, "/report/answer"),
                                ({"report": {"other": "x"}}, "unknown field")):
            forged = [*lines]
            forged[at] = json.dumps({**json.loads(lines[at]), **change})
            self.journal_file.write_text("\n".join(forged) + "\n")
            outcome = self.run_job(job, "--resume")
            self.assertEqual(outcome.exit, 2)
            self.assertIn(problem, outcome.events("job.refused")[0]["failure_message"])


class OfAnAgent(AgentCase):
    def test_the_models_own_words_stand(self):
        write = runs("""echo '{"answer": "of a command", "model": "other"}' >$CYNODE_REPORT""")
        outcome, _ = self.run_replies(write, finish("of the model"))
        self.assert_answer(outcome, "of the model")
        self.assertNotEqual(outcome.result["inference"]["model"], "other")
        self.assertNotIn("source", outcome.result["inference"])
        self.assertEqual(outcome.steps[0]["result"]["report"], {"answer": "of a command", "model": "other"})


sba.main(__name__)
