# SPDX-License-Identifier: Apache-2.0
"""A job among those it talks to: skills by id, one connection where all is at one origin, no socket where nothing is named."""
import json
import os
import shutil
import unittest

import sba
from servers import mcp, model, status

GET = {"inputSchema": {"type": "object", "properties": {"task_id": {"type": "string"}, "skill_id": {"type": "string"}},
                       "required": ["task_id", "skill_id"]}}
DONE = model.ending("It is done.")


def skill_id_of(exchange):
    return exchange.message.get("params", exchange.message)["arguments"]["skill_id"]


class Skills(sba.SandboxCase):
    environment = {"SBA_CONFINE": "off"}  # its commands kill the runner

    def gateway(self, give, kind=mcp.Server, **options):
        server = kind(tools={"skills.get": (GET, lambda exchange: give(skill_id_of(exchange)))}, **options)
        self.addCleanup(server.close)
        return server

    def model(self, *replies):
        server = model.Server({"models": {"m": {"capabilities": ["completion", "tools"], "context_length": 131072}},
                               "replies": list(replies)})
        self.addCleanup(server.__exit__)
        return server

    @staticmethod
    def agent_job(*skill_ids, **fields):
        return sba.SandboxCase.job(execution_mode="agent_inference", inference={"allowed_models": ["m"]},
                                   context={"skill_ids": list(skill_ids), **fields.pop("context", {})}, **fields)

    def prompted(self, url, job, *more, replies=(DONE,)):
        """The outcome, and what the model was told first."""
        server = self.model(*replies)
        outcome = self.run_job(job, *more, env={"OLLAMA_BASE_URL": server.url, "SBA_MCP_GATEWAY_URL": url})
        chats = [request["body"] for request in server.requests if request["path"].endswith("/api/chat")]
        return outcome, "\n".join(message["content"] for message in chats[0]["messages"]) if chats else None

    def test_in_every_form_that_an_answer_may_have(self):
        forms = {
            "text": lambda _: mcp.text("Mind the gap."), "json": lambda _: mcp.text('{"name": "Gaps", "content": "Mind the gap."}'),
            "structured": lambda _: {"content": [], "structuredContent": {"skill": {"title": "Gaps", "text": "Mind the gap."}}},
        }
        for name, give in forms.items():
            gateway = self.gateway(give)
            outcome, prompt = self.prompted(gateway.url, self.agent_job("gap-1"))
            self.assertEqual(outcome.exit, 0)
            heading = "gap-1" if name == "text" else "Gaps"
            self.assertIn(f"## Skills\n\n### {heading}\n\nMind the gap.\n", prompt)
            (call,) = gateway.messages("tools/call")
            self.assertEqual(call["params"]["arguments"], {"task_id": "task-1", "skill_id": "gap-1"})

    def test_by_the_plain_form(self):
        gateway = self.gateway(lambda name: {"id": name, "name": "Gaps", "content": "Mind the gap."}, mcp.PlainForm)
        _, prompt = self.prompted(gateway.origin, self.agent_job("gap-1"))
        self.assertIn("### Gaps\n\nMind the gap.\n", prompt)

    def test_beside_those_of_the_job(self):
        gateway = self.gateway(lambda name: mcp.text("fetched " + name))
        _, prompt = self.prompted(gateway.url, self.agent_job("one", "two", context={"skills": ["given"]}))
        self.assertLess(prompt.index("given"), prompt.index("fetched one"))
        self.assertLess(prompt.index("fetched one"), prompt.index("fetched two"))

    def test_what_cannot_be_had_is_named_as_missing(self):
        answers = {"bad": mcp.text("no such skill", isError=True), "empty": mcp.text(" "), "huge": mcp.text("x" * (256 * 1024 + 1)),
                   "odd": {"content": [], "structuredContent": {"x": 1}}, "good": mcp.text("Mind the gap.")}
        outcome, prompt = self.prompted(self.gateway(answers.get).url, self.agent_job(*answers))
        self.assertEqual(outcome.exit, 0)
        for name in ("bad", "empty", "huge", "odd"):
            self.assertIn(f"The skill {name} could not be fetched", prompt)
        self.assertNotIn("The skill good", prompt)
        self.assertNotIn("xxx", prompt)
        missing = [line for line in outcome.log if line["event"] == "skill.missing"]
        self.assertEqual([(line["skill_id"], line["code"]) for line in missing],
                         [("bad", "skill_refused"), ("empty", "bad_answer"), ("huge", "too_large"), ("odd", "bad_answer")])

    def test_all_together_are_bounded(self):
        self.prompted(self.gateway(lambda _: mcp.text("y" * 250000)).url, self.agent_job(*"abcdef"))
        lines = map(json.loads, (self.job_directory / "journal.jsonl").read_text().splitlines())
        (line,) = [line for line in lines if line["event"] == "skills"]
        self.assertEqual(([skill["id"] for skill in line["found"]], line["missing"]), (list("abcd"), list("ef")))

    def test_without_a_gateway_and_with_a_dead_one(self):
        dead = status.Server(begin=False)
        self.addCleanup(dead.close)
        for url in ("", dead.url):
            outcome, prompt = self.prompted(url, self.agent_job("one", "two"))
            self.assertEqual(outcome.exit, 0)
            self.assertIn("The skill one could not be fetched", prompt)
            self.assertIn("The skill two could not be fetched", prompt)

    def test_a_replay_tells_the_same_and_asks_nobody(self):
        gateway = self.gateway(lambda name: mcp.text("Mind the " + name))
        job = self.agent_job("gap", "bad")
        outcome, first = self.prompted(gateway.url, job)
        self.assertEqual(outcome.exit, 0)
        recording = self.root / "recording.jsonl"
        shutil.copy(self.job_directory / "journal.jsonl", recording)
        recording.chmod(0o644)
        asked = gateway.connections
        outcome = self.run_job(job, "--replay", str(recording), env={"SBA_MCP_GATEWAY_URL": gateway.url})
        self.assertEqual((outcome.exit, outcome.result["failure_message"]), (0, None))
        self.assertEqual(gateway.connections, asked)
        self.assertIn("Mind the gap", first)

    def test_a_run_that_goes_on_fetches_nothing_again(self):
        gateway = self.gateway(lambda name: mcp.text("Mind the " + name))
        job = self.agent_job("gap")
        kill = {"content": "", "tool_calls": [{"name": "run_command", "arguments": {"shell": "kill -9 $PPID"}}]}
        self.prompted(gateway.url, job, replies=[kill])
        calls = len(gateway.messages("tools/call"))
        outcome, prompt = self.prompted(gateway.url, job, "--resume")
        self.assertEqual((outcome.exit, len(gateway.messages("tools/call")), calls), (0, 1, 1))
        self.assertIn("Mind the gap", prompt)

    def test_a_direct_jobs_questions_have_them_too(self):
        gateway = self.gateway(lambda name: {} if name == "lost" else mcp.text("Mind the gap."))
        server = self.model({"content": "mind"}, {"content": "what?"})
        job = self.job(self.step("ask_model", prompt="mind what?"), self.step("ask_model", prompt="again?"),
                       inference={"allowed_models": ["m"]}, context={"skill_ids": ["gap", "lost"]})
        outcome = self.run_job(job, env={"OLLAMA_BASE_URL": server.url, "SBA_MCP_GATEWAY_URL": gateway.url})
        self.assertEqual(outcome.exit, 0, outcome.result)
        prompts = [request["body"]["messages"][0]["content"] for request in server.requests if request["path"].endswith("/api/chat")]
        for prompt in prompts:
            self.assertIn("## Skills\n\n### gap\n\nMind the gap.\n\nThe skill lost could not be fetched", prompt)
        self.assertEqual((len(prompts), len(gateway.messages("tools/call"))), (2, 2))

    def test_a_direct_job_has_no_use_for_them(self):
        gateway = self.gateway(lambda name: mcp.text(name))
        outcome = self.run_job(self.job(self.step("run_command", shell="true"), context={"skill_ids": ["gap"]}),
                               env={"SBA_MCP_GATEWAY_URL": gateway.url})
        self.assertEqual((outcome.exit, gateway.connections), (0, 0))


class Late(sba.SandboxCase):
    """What was not there when the job began."""

    def test_a_gateway_takes_artifacts_although_it_had_no_skills(self):
        os.chmod(self.root, 0o777)
        path = self.root / "gateway.sock"
        wait = {"content": "", "tool_calls": [{"name": "run_command", "arguments": {
            "shell": "echo > $CYNODE_ARTIFACTS_DIR/a; echo > begun; until test -e go; do sleep 0.02; done"}}]}
        server = model.Server({"models": {"m": {"capabilities": ["completion", "tools"], "context_length": 32768}}, "replies": [wait, DONE]})
        self.addCleanup(server.__exit__)
        job = self.job(execution_mode="agent_inference", inference={"allowed_models": ["m"]}, context={"skill_ids": ["gap"]})
        process = self.start(job, env={"OLLAMA_BASE_URL": server.url,
                                       "SBA_MCP_GATEWAY_URL": "http+unix://" + str(path).replace("/", "%2F") + "/mcp"})
        sba.wait_for((self.workspace / "begun").exists, "the command to begin")
        gateway = mcp.Server(tools={"artifact.put": ({}, lambda _: mcp.text("art-1"))}, socket=str(path))
        self.addCleanup(gateway.close)
        path.chmod(0o777)
        self.put("go")
        outcome = self.outcome_of(process)
        self.assertEqual((outcome.exit, outcome.result["artifacts"][0].get("ref")), (0, "art-1"))
        self.assertEqual([line["skill_id"] for line in outcome.log if line["event"] == "skill.missing"], ["gap"])

    def test_the_beginning_is_reported_before_a_later_step_of_an_agent(self):
        shell = {"content": "", "tool_calls": [{"name": "run_command", "arguments": {"shell": "true"}}]}
        for answers in ([503, 204], [503, 503, 204]):
            reports = status.Server(*answers)
            self.addCleanup(reports.close)
            server = model.Server({"models": {"m": {"capabilities": ["completion", "tools"], "context_length": 32768}},
                                   "replies": [shell, shell, shell, DONE]})
            self.addCleanup(server.__exit__)
            job = self.job(execution_mode="agent_inference", inference={"allowed_models": ["m"]})
            outcome = self.run_job(job, env={"OLLAMA_BASE_URL": server.url, "SBA_JOB_STATUS_URL": reports.url})
            self.assertEqual(outcome.exit, 0)
            self.assertEqual([body["status"] for body in reports.bodies], ["in_progress"] * len(answers) + ["completed"])
            events = [line["event"] for line in outcome.log if line["event"].startswith(("report", "step"))]
            self.assertEqual(events.index("report.sent"), {2: 3, 3: 5}[len(answers)])


class OneOrigin(sba.SandboxCase):
    """Status, gateway and model at one origin."""
    CHAT = [{"message": {"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "run_command", "arguments": {"shell": "echo x > $CYNODE_ARTIFACTS_DIR/a"}}}]}},
            {"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "finish", "arguments": {"answer": "It is done."}}}]}}]

    def origin(self):
        replies = list(self.CHAT)
        answers = {"/api/tags": lambda: {"models": [{"name": "m", "model": "m"}]}, "/api/ps": lambda: {"models": []},
                   "/api/show": lambda: {"capabilities": ["completion", "tools"],
                                         "model_info": {"general.architecture": "x", "x.context_length": 32768}},
                   "/api/chat": lambda: {"model": "m", **replies.pop(0), "done": True, "done_reason": "stop", "prompt_eval_count": 3000,
                                         "eval_count": 10},
                   "/status": lambda: None}

        def hook(exchange):
            if exchange.path not in answers:
                return False
            value = answers[exchange.path]()
            exchange.whole(json.dumps(value).encode() + b"\n", kind="application/x-ndjson")
            return True
        tools = {"skills.get": (GET, lambda _: mcp.text("Mind the gap.")), "artifact.put": ({}, lambda _: mcp.text("art-1"))}
        server = mcp.Server(era="modern", tools=tools, hook=hook, get=hook)
        self.addCleanup(server.close)
        return server

    def test_one_connection_for_all(self):
        server = self.origin()
        job = self.job(execution_mode="agent_inference", inference={"allowed_models": ["m"]}, context={"skill_ids": ["gap"]})
        outcome = self.run_job(job, env={"SBA_JOB_STATUS_URL": server.origin + "/status", "SBA_MCP_GATEWAY_URL": server.url,
                                         "OLLAMA_BASE_URL": server.origin})
        self.assertEqual((outcome.exit, outcome.result["status"]), (0, "success"), outcome.result)
        self.assertEqual(outcome.result["artifacts"][0]["ref"], "art-1")
        self.assertGreater(len(server.requests), 9)
        self.assertEqual(server.connections, 1)


@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
@unittest.skipIf(sba.IS_DEV, "what the sanitizers and the loader of the dev build open is not ours")
class NoSocket(sba.SandboxCase):
    """A job that is given no address: the runner itself (not its commands) makes no socket, and reads nothing that leads to one."""

    def trace(self, job, *more, env=None):
        log = self.root / "trace"
        log.touch()
        self.give(log)
        log.chmod(0o666)
        wrapper = ["strace", "-qq", "-o", str(log), "-e", "trace=network,openat,open,execve"]
        user = {}
        if sba.UID:
            # The runner is closed to other processes of its user: only root's strace can read the names that it opens.
            wrapper += ["setpriv", f"--reuid={sba.UID}", f"--regid={sba.UID}", "--clear-groups"]
            user = {"user": None, "group": None, "extra_groups": None}
        process = self.start(job, *more, wrapper=wrapper, env=env, **user)
        process.communicate(timeout=60)
        return process.returncode, log.read_text().rpartition("execve(")[2].partition("\n")[2]

    def check(self, text):
        lines = [line for line in text.splitlines() if not line.startswith(("open(", "openat(", "---", "+++"))]
        self.assertEqual(lines, [])
        self.assertRegex(text, "(?m)^open")  # strace saw it work
        if sba.UID:
            self.assertIn("job.json", text)
            for word in ("resolv.conf", "/etc/hosts", "nsswitch", "/ssl", "ca-certificates", "/pki"):
                self.assertNotIn(word, text)

    def test_whatever_the_job(self):
        jobs = {
            0: self.job(self.step("run_command", shell="echo x > $CYNODE_ARTIFACTS_DIR/a"), self.step("write_file", path="b", content=""),
                        context={"skill_ids": ["gap"]}),
            1: self.job(self.step("run_command", shell="exit 1")),
            2: {**self.job(), "surprise": 1},
            124: self.job(self.step("run_command", shell="sleep 9"), max_runtime_seconds=1),
        }
        for wanted, job in jobs.items():
            code, text = self.trace(job)
            self.assertEqual(code, wanted)
            self.check(text)

    def test_proxies_alone_are_no_reason(self):
        code, text = self.trace(self.job(), env={"HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"})
        self.assertEqual(code, 0)
        self.check(text)

    def test_the_trace_would_show_one(self):
        server = status.Server(204)
        self.addCleanup(server.close)
        code, text = self.trace(self.job(), env={"SBA_JOB_STATUS_URL": server.url})
        self.assertEqual(code, 0)
        self.assertIn("socket(", text)


class Descriptors(sba.SandboxCase):
    def test_a_command_sees_no_connection_of_the_runner(self):
        server = status.Server(204)
        self.addCleanup(server.close)
        outcome = self.run_job(self.job(self.step("run_command", shell="ls -l /proc/self/fd")), env={"SBA_JOB_STATUS_URL": server.url})
        self.assertEqual(server.connections, 1)
        self.assertNotIn("socket", outcome.result["steps"][0]["output"])


if __name__ == "__main__":
    sba.main()
