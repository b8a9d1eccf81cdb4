# SPDX-License-Identifier: Apache-2.0
"""`ask_model`: a step that asks the model once, in a direct job."""
import sba
from agent_case import AgentCase


class AskModel(AgentCase):
    def ask(self, *replies, fields=None, **arguments):
        server = self.server(*replies)
        steps = self.step("ask_model", **arguments), self.step("list_tree", path=".")
        job = self.job(*steps, inference={"allowed_models": ["m"]}, **(fields or {}))
        return server, self.run_job(job, env={"OLLAMA_BASE_URL": server.url})

    def test_a_question_in_a_direct_job(self):
        context = {"task_context": "TASK", "requirements": ["REQUIRED"]}
        server, outcome = self.ask({"content": "42"}, fields={"context": context, "persona": {"title": "TITLE"}},
                                   prompt="what?", system="be brief", save_to="out/answer.txt")
        self.assert_end(outcome, 0)
        self.assertEqual(outcome.steps[0]["result"]["content"], "42")
        self.assertEqual(self.text("out/answer.txt"), "42")
        system, question = server.chats()[0]["messages"]
        self.assertEqual((system["role"], question), ("system", {"role": "user", "content": "what?"}))
        self.assertRegex(system["content"], "(?s)TITLE.*TASK.*REQUIRED.*be brief.*Time left:.*Todo list:")
        self.assertEqual((outcome.result["inference_used"], outcome.result["inference"]["requests"]), (True, 1))

    def ask_twice(self, first, second, schema):
        return self.ask(*[{"content": content, "prompt_tokens": 10 * number, "completion_tokens": number}
                          for number, content in ((1, first), (2, second))], prompt="x", json_schema=schema)

    def test_an_answer_that_does_not_fit_is_asked_for_once_more(self):
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        for bad, mistake in (('{"a": 1}', "/a: expected a string"), ("{}", "/a: is missing"), ("[", "is not JSON")):
            with self.subTest(bad):
                server, outcome = self.ask_twice(bad, '```json\n{"a": "1",}\n```', schema)
                self.assert_end(outcome, 0)
                found = [outcome.steps[0]["result"][name] for name in ("json", "prompt_tokens", "completion_tokens")]
                self.assertEqual(found, [{"a": "1"}, 30, 3])
                *_, answer, question = server.chats()[1]["messages"]
                self.assertEqual((answer["role"], answer["content"]), ("assistant", bad))
                self.assertIn(mistake, question["content"])

    def test_a_second_answer_that_does_not_fit_fails_the_step(self):
        letters = {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 1}
        server, outcome = self.ask_twice('{"a": []}', '{"a": ["z"]}', {"properties": {"a": letters}})
        self.assertEqual((outcome.exit, outcome.code, len(server.chats())), (1, "step_failed", 2))
        self.assertIn("does not fit json_schema: /a/0: expected one of", outcome.message)

    def test_an_answer_that_is_too_long(self):
        _, outcome = self.ask({"content": "12\u20ac45"}, prompt="x", fields={"max_output_bytes": 6})
        self.assert_end(outcome, 1, "constraint_violation")
        entry = outcome.steps[0]
        self.assertEqual((entry["output"], entry.get("output_truncated")), ("12\u20ac4", True))

    def test_the_endpoint_is_that_of_the_jobs_source(self):
        for source in ("worker", "api_egress", "orchestrator", None):
            wanted, other = "egress" if source == "api_egress" else "worker", None if source == "worker" else "egress"
            inference = {"allowed_models": ["m"], "source": source}
            for model_of_worker, asked in (("m", wanted), ("other", other)):
                worker = self.server({"content": "worker"}, models={model_of_worker: {}})
                egress = self.server({"content": "egress"}).url + "/v1"
                outcome = self.run_steps(self.step("ask_model", prompt="x"), inference=inference,
                                         env={"OLLAMA_BASE_URL": worker.url, "SBA_API_EGRESS_URL": egress})
                self.assertEqual(outcome.steps[0].get("output"), asked, (source, model_of_worker, outcome.result))
                self.assertEqual(outcome.code, None if asked else "inference_unavailable")

    def test_a_model_that_is_not_allowed_is_not_asked(self):
        server, outcome = self.ask({"content": "x"}, prompt="x", model="other")
        self.assertEqual(outcome.exit, 1)
        self.assertIn("other", outcome.message)
        self.assertEqual(server.requests, [])


sba.main(__name__)
