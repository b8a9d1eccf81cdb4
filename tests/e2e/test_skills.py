# SPDX-License-Identifier: Apache-2.0
"""Skills that a job names by id: fetched before the first prompt, or named as missing; and what comes late."""
import socket

import sba
from agent_case import AgentCase, call
from servers import faults, mcp, model, status

GET = {"inputSchema": {"type": "object", "properties": {"task_id": {"type": "string"}, "skill_id": {"type": "string"}},
                       "required": ["task_id", "skill_id"]}}
DONE = model.ending("It is done.")
WIDE = {"m": {"capabilities": ["completion", "tools"], "context_length": 131072}}


def skill_id_of(exchange):
    return exchange.message.get("params", exchange.message)["arguments"]["skill_id"]


class Skills(AgentCase):
    def gateway(self, give, kind=mcp.Server):
        return self.closing(kind(tools={"skills.get": (GET, lambda exchange: give(skill_id_of(exchange)))}))

    def with_skills(self, *skill_ids, **context):
        return self.agent_job(context={"skill_ids": list(skill_ids), **context})

    def prompted(self, url, job, *more, replies=(DONE,)):
        server = self.server(*replies, models=WIDE)
        outcome = self.run_agent(server, *more, job=job, env={"SBA_MCP_GATEWAY_URL": url})
        return outcome, "\n".join(message["content"] for chat in server.chats()[:1] for message in chat["messages"])

    def test_in_every_form_that_an_answer_may_have(self):
        forms = {
            "text": lambda _: mcp.text("Mind the gap."),
            "json": lambda _: mcp.text('{"name": "Gaps", "content": "Mind the gap."}'),
            "structured": lambda _: {"content": [],
                                     "structuredContent": {"skill": {"title": "Gaps", "text": "Mind the gap."}}},
        }
        for name, give in forms.items():
            gateway = self.gateway(give)
            outcome, prompt = self.prompted(gateway.url, self.with_skills("gap-1"))
            self.assert_end(outcome, 0)
            heading = "gap-1" if name == "text" else "Gaps"
            self.assertIn(f"## Skills\n\n### {heading}\n\nMind the gap.\n", prompt)
            (call,) = gateway.messages("tools/call")
            self.assertEqual(call["params"]["arguments"], {"task_id": "task-1", "skill_id": "gap-1"})

    def test_what_cannot_be_had_is_named_as_missing(self):
        answers = {"bad": mcp.text("no such skill", isError=True), "empty": mcp.text(" "),
                   "huge": mcp.text("x" * (256 * 1024 + 1)),
                   "odd": {"content": [], "structuredContent": {"x": 1}}, "good": mcp.text("Mind the gap.")}
        outcome, prompt = self.prompted(self.gateway(answers.get).url, self.with_skills(*answers))
        self.assert_end(outcome, 0)
        for name in ("bad", "empty", "huge", "odd"):
            self.assertIn(f"The skill {name} could not be fetched", prompt)
        self.assert_lacks(prompt, "The skill good", "xxx")
        missing = outcome.events("skill.missing")
        self.assertEqual([(line["skill_id"], line["code"]) for line in missing],
                         [("bad", "skill_refused"), ("empty", "bad_answer"), ("huge", "too_large"),
                          ("odd", "bad_answer")])

    def test_is_asked_for_again_where_the_answer_is_lost(self):
        asked = []

        def give(exchange):
            asked.append(skill_id_of(exchange))
            if len(asked) > 1:
                return mcp.text("Mind the gap.")
            exchange.close_connection = True
            return exchange.connection.shutdown(socket.SHUT_RDWR)
        gateway = self.closing(mcp.Server(tools={"skills.get": (GET, give)}))
        outcome, prompt = self.prompted(gateway.url, self.with_skills("gap"))
        self.assert_end(outcome, 0)
        self.assertEqual((asked, "Mind the gap." in prompt), (["gap", "gap"], True))

    def test_without_a_gateway_and_with_a_dead_one(self):
        dead = self.closing(status.Server(begin=False))
        for url in ("", dead.url):
            outcome, prompt = self.prompted(url, self.with_skills("one", "two"))
            self.assert_end(outcome, 0)
            self.assert_says(prompt, "The skill one could not be fetched", "The skill two could not be fetched")

    def test_a_replay_tells_the_same_and_asks_nobody(self):
        gateway = self.gateway(lambda name: mcp.text("Mind the " + name))
        job = self.with_skills("gap", "bad")
        outcome, first = self.prompted(gateway.url, job)
        self.assert_end(outcome, 0)
        asked = gateway.connections
        outcome = self.run_job(job, "--replay", self.recording(), env={"SBA_MCP_GATEWAY_URL": gateway.url})
        self.assertEqual((outcome.exit, outcome.message), (0, None))
        self.assertEqual(gateway.connections, asked)
        self.assertIn("Mind the gap", first)

    def test_a_direct_jobs_questions_have_them_too(self):
        gateway = self.gateway(lambda name: {} if name == "lost" else mcp.text("Mind the gap."))
        server = self.server({"content": "mind"}, {"content": "what?"})
        job = self.job(self.step("ask_model", prompt="mind what?"), self.step("ask_model", prompt="again?"),
                       inference={"allowed_models": ["m"]}, context={"skill_ids": ["gap", "lost"]})
        self.assert_end(self.run_agent(server, job=job, env={"SBA_MCP_GATEWAY_URL": gateway.url}), 0)
        prompts = [body["messages"][0]["content"] for body in server.chats()]
        for prompt in prompts:
            self.assertIn("## Skills\n\n### gap\n\nMind the gap.\n\nThe skill lost could not be fetched", prompt)
        self.assertEqual((len(prompts), len(gateway.messages("tools/call"))), (2, 2))

    def test_a_direct_job_has_no_use_for_them(self):
        gateway = self.gateway(lambda name: mcp.text(name))
        outcome = self.run_steps(self.sh("true"), context={"skill_ids": ["gap"]},
                                 env={"SBA_MCP_GATEWAY_URL": gateway.url})
        self.assertEqual((outcome.exit, gateway.connections), (0, 0))


class OneOrigin(AgentCase):
    def origin(self):
        replies = iter([call("run_command", shell="echo x > $CYNODE_ARTIFACTS_DIR/a"), DONE])
        probes = self.server().probes()

        def hook(exchange):
            if exchange.path == "/api/chat":
                reply = {**next(replies), "prompt_tokens": 3000, "completion_tokens": 10}
                return exchange.whole(model.Ollama({"model": "m"}, reply, faults.Fault(None)).whole() + b"\n",
                                      kind="application/x-ndjson")
            if exchange.path in probes:
                return exchange.whole(probes[exchange.path](exchange.message)[1])
            return exchange.path == "/status" and exchange.whole(None)
        tools = {"skills.get": (GET, lambda _: mcp.text("Mind the gap.")),
                 "artifact.put": ({}, lambda _: mcp.text("art-1"))}
        return self.closing(mcp.Server(era="modern", tools=tools, hook=hook, get=hook))

    def test_one_connection_for_all(self):
        server = self.origin()
        outcome = self.assert_end(self.run_job(self.agent_job(context={"skill_ids": ["gap"]}), env={
            "SBA_JOB_STATUS_URL": server.origin + "/status", "SBA_MCP_GATEWAY_URL": server.url,
            "OLLAMA_BASE_URL": server.origin}), 0)
        self.assertEqual(outcome.result["artifacts"][0]["ref"], "art-1")
        self.assertGreater(len(server.requests), 9)
        self.assertEqual(server.connections, 1)


sba.main(__name__)
