# SPDX-License-Identifier: Apache-2.0
"""What the result has when the runner crashes: all that the run knew."""
import signal

import sba
from agent_case import AgentCase, call


class Crash(AgentCase):
    """The journal is folded as --resume folds it."""
    environment = {"SBA_CONFINE": "off"}
    CRASH = "test -e again && exit; touch begun; sleep 600"

    def crashed(self, job, server):
        outcome = self.run_and_signal(job, signal.SIGSEGV, (self.workspace / "begun").exists, "the last step",
                                      env={"OLLAMA_BASE_URL": server.url})
        sba.result_validator().validate(outcome.result)
        self.assertEqual((outcome.exit, outcome.code), (1, "internal_error"), outcome.stderr)
        return outcome.result

    def test_requests_of_ask_model(self):
        questions = [self.step("ask_model", prompt=prompt) for prompt in ("2+2?", "a long one")]
        job = self.job(*questions, self.sh(self.CRASH), inference={"allowed_models": ["m"]})
        long = "".join(f"{number} words\n" for number in range(8000))
        result = self.crashed(job, self.server({"content": "4"}, {"content": long}))
        self.assertTrue(result["inference_used"])
        self.assertEqual((result["inference"]["model"], result["inference"]["requests"]), ("m", 2))

    def test_exchanges_and_todo_list_of_an_agent(self):
        server = self.server(call("todo_add", title="my own"), call("run_command", shell="echo \'\"check\":1\'"),
                             call("run_command", shell=self.CRASH), call("finish", answer="done", status="done"))
        job = self.agent_job(context={"acceptance_criteria": ["it works"]})
        result = self.crashed(job, server)
        self.assertEqual((result["inference"]["requests"], result["inference"]["model"]), (3, "m"))
        self.assertGreater(result["inference"]["prompt_tokens"], 100)
        self.assertIn(("my own", "agent"), [(item["title"], item["source"]) for item in result["todo"]["items"]])
        self.assertEqual([step.get("check") for step in result["steps"]], [None, None])
        self.assertIsNone(result["acceptance"][0]["met"])

    def test_checks_that_ran(self):
        checks = {"good": "true", "bad": "exit 3", "late": self.CRASH}
        criteria = [{"criterion": name, "check": {"shell": script}} for name, script in checks.items()] + ["unchecked"]
        job = self.job(self.sh("echo \'{\"check\":4}\'"), context={"acceptance_criteria": criteria})
        result = self.crashed(job, self.server())
        self.assertEqual([(item["criterion"], item["met"]) for item in result["acceptance"]],
                         [("good", True), ("bad", False), ("late", None), ("unchecked", None)])
        self.assertEqual(result["acceptance"][0]["evidence"], "check-2: `true` ended with exit code 0")
        self.assertIn("exit code 3", result["acceptance"][1]["evidence"])
        items = [item for item in result["todo"]["items"] if item["source"] == "acceptance_criterion"]
        self.assertEqual(items[0]["status"], "done")

    def test_a_second_crash_knows_the_first_runs_steps(self):
        job = self.job(self.sh("echo one"), self.sh(self.CRASH), self.sh("true"))
        first = self.crashed(job, self.server())
        (self.workspace / "begun").unlink()
        has_begun = (self.workspace / "begun").exists
        outcome = self.run_and_signal(job, signal.SIGSEGV, has_begun, "the last step", "--resume")
        self.assertEqual(outcome.statuses, ["success", "failure", "skipped"])
        self.assertEqual((outcome.result["started_at"], outcome.steps[0]), (first["started_at"], first["steps"][0]))
        self.assertGreater(outcome.result["duration_ms"], first["duration_ms"])
        self.put("again")
        self.assertEqual(self.run_job(job, "--resume").statuses, ["success"] * 3)


sba.main(__name__)
