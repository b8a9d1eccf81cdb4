# SPDX-License-Identifier: Apache-2.0
"""What a deployed node does with the runner: a gateway behind an envelope, variables, paths, its way to start a job."""
import base64
import hashlib
import json
import os
import re
import unittest
import urllib.parse

import sba
from gateway_case import GatewayCase, step, tool
from servers import mcp, model

MIB = 1 << 20


class NodeCase(GatewayCase):
    def proxy(self, **options):
        return self.gateway(mcp.NodeProxy, **options)

    @staticmethod
    def names(gateway):
        return {"MCP_GATEWAY_PROXY_URL": gateway.url}

    def failed(self, gateway, name="help.get", **arguments):
        outcome = self.direct(gateway, step(name, **arguments))
        self.assertEqual(outcome.exit, 1, outcome.result)
        return outcome.steps[0]["error_code"], outcome.message


class Envelope(NodeCase):
    def test_a_call_goes_to_the_node_in_an_envelope(self):
        gateway = self.proxy(tools={"help.get": tool(lambda e: {"got": e.message["arguments"]})})
        outcome = self.direct(gateway, step("help.get", topic="x"))
        self.assertEqual(outcome.steps[0]["output"], '{"got":{"task_id":"task-1","topic":"x"}}')
        (command, path, headers, envelope), (_, inner, _, message) = gateway.requests
        self.assertEqual((command, path, inner), ("POST", mcp.NodeProxy.PATH, "/v1/mcp/tools/call"))
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual((envelope["version"], envelope["method"], envelope["headers"]),
                         (1, "POST", {"Content-Type": ["application/json"]}))
        self.assertEqual(message, {"tool_name": "help.get", "arguments": {"topic": "x", "task_id": "task-1"}})

    def test_over_a_unix_socket(self):
        path = str(self.root / "proxy.sock")
        gateway = self.proxy(socket=path, tools={"help.get": tool(lambda _: "words")})
        os.chmod(path, 0o777)
        url = f"http+unix://{urllib.parse.quote(path, safe='')}{mcp.NodeProxy.PATH}"
        outcome = self.run_steps(step("help.get"), env={"MCP_GATEWAY_PROXY_URL": url})
        self.assertEqual((outcome.exit, outcome.steps[0]["output"]), (0, "words"), outcome.result)
        self.assertEqual(len(gateway.requests), 2)

    def test_statuses_of_the_gateway(self):
        def refusing(status):
            return tool(lambda e: e.whole({"error": "the reason"}, status))
        cases = {400: "tool_refused", 401: "unauthorized", 403: "tool_denied", 404: "tool_refused", 422: "tool_refused",
                 500: "gateway_failed", 501: "tool_unavailable"}
        gateway = self.proxy(tools={f"help.{status}": refusing(status) for status in cases})
        for status, code in cases.items():
            with self.subTest(status):
                found, message = self.failed(gateway, f"help.{status}")
                self.assertEqual(found, code)
                self.assertRegex(message, f"status {status}.*: the reason")

    def test_statuses_of_the_node(self):
        gateway = self.proxy()
        for status, code in ((400, "refused"), (403, "unauthorized"), (502, "gateway_failed"), (503, "gateway_failed")):
            with self.subTest(status):
                gateway.refusal = lambda e, status=status: e.whole(
                    {"type": "https://cynode.ai/problems/x", "title": "No", "status": status,
                     "detail": "managed agent token expired"},
                    status, "application/problem+json")
                found, message = self.failed(gateway)
                self.assertEqual(found, code)
                self.assertRegex(message, f"status {status}.*: managed agent token expired$")

    def test_answers_that_cannot_be_read(self):
        gateway = self.proxy()
        for answer, words in ((b"<html>", "sent an answer that is not JSON: "),
                              ([], "sent an answer that is not an object"),
                              ({"version": 1}, "sent an answer without the gateway's status"),
                              ({"status": "200"}, "without the gateway's status"),
                              ({"status": 100, "body_b64": "e30="}, "the gateway's status"),
                              ({"status": 200, "body_b64": "!"},
                               "sent an answer with a body_b64 that cannot be decoded"),
                              ({"status": 200, "body_b64": 7}, "cannot be decoded"),
                              ({"status": 200, "body_b64": base64.b64encode(b"<html>").decode()}, "not JSON")):
            with self.subTest(answer):
                gateway.refusal = lambda e, answer=answer: e.whole(answer)
                found, message = self.failed(gateway)
                self.assertEqual(found, "bad_answer")
                self.assertIn(words, message)

    def test_an_answer_that_is_nothing_but_an_error(self):
        # Whatever its status says. One that has an error among other things tells about it.
        for body in ({"error": "user_id required"}, {"error": {"code": 7, "message": "user_id required"}},
                     {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "user_id required"}}):
            gateway = self.proxy(tools={"help.get": tool(lambda _, body=body: body)})
            self.assertEqual(self.failed(gateway),
                             ("step_failed", "step 1 (step-1, call_tool): the tool help.get failed: user_id required"))
        for body in ({"error": None}, {"error": "of the task's job", "task_id": "task-2"}, {"error": []}):
            gateway = self.proxy(tools={"help.get": tool(lambda _, body=body: body)})
            self.assertEqual(json.loads(self.direct(gateway, step("help.get")).steps[0]["output"]), body)

    def test_a_call_that_is_too_large_is_not_sent(self):
        # One that is just not too large is sent, and no longer than a node takes.
        gateway = self.proxy(tools={"help.get": tool(lambda e: len(e.message["arguments"]["topic"]))})
        code, message = self.failed(gateway, topic="x" * 8 * MIB)
        self.assertEqual((code, gateway.requests), ("too_large", []))
        size, most = map(int, re.search(r"the call has (\d+) bytes; the node's proxy accepts at most (\d+)$",
                                        message).groups())
        largest = 8 * MIB - (size - most)
        self.assertEqual(self.direct(gateway, step("help.get", topic="x" * largest)).steps[0]["output"], str(largest))
        self.assertIn(int(gateway.requests[0][2]["Content-Length"]), range(10 * MIB - 2048, 10 * MIB + 1))
        self.assertEqual(self.failed(gateway, topic="x" * (largest + 1))[0], "too_large")

    def test_artifacts(self):
        stored = {}

        def put(exchange):
            content = base64.b64decode(exchange.message["arguments"]["content_bytes_base64"])
            stored[exchange.message["arguments"]["path"]] = hashlib.sha256(content).hexdigest()
            return {"ref": "art:" + exchange.message["arguments"]["path"]}
        gateway = self.proxy(tools={"artifact.put": tool(put)})
        make = "cd $CYNODE_ARTIFACTS_DIR; : > empty; head -c 5500000 /dev/urandom > a; truncate -s 6M large"
        outcome = self.assert_end(self.direct(gateway, self.sh(make)), 0)
        listed = {one["path"]: one for one in outcome.result["artifacts"]}
        self.assertEqual(stored, {name: listed[name]["sha256"] for name in ("a", "empty")})
        self.assertEqual({name: one.get("ref") for name, one in listed.items()},
                         {"a": "art:a", "empty": "art:empty", "large": None})
        (failed,) = outcome.events("artifact.failed")
        self.assertEqual((failed["path"], failed["code"], failed["tries"]), ("large", "too_large", 1))


class Variables(NodeCase):
    ORDER = ("SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_PROXY_URL", "MCP_GATEWAY_URL", "ORCHESTRATOR_MCP_TOOLS_BASE_URL",
             "ORCHESTRATOR_MCP_GATEWAY_BASE_URL", "ORCHESTRATOR_URL")

    def test_the_first_that_is_set_counts(self):
        gateways = [self.gateway(mcp.PlainForm, tools={"help.get": tool(lambda _, n=number: n)})
                    for number in range(len(self.ORDER))]
        for number in range(len(self.ORDER)):
            environment = {name: gateway.origin for name, gateway in list(zip(self.ORDER, gateways))[number:]}
            outcome = self.run_steps(step("help.get"), env=environment)
            self.assertEqual(outcome.steps[0]["output"], str(number), outcome.result)

    def test_blanks_around_a_value_do_not_count(self):
        gateway = self.gateway(mcp.PlainForm, tools={"help.get": tool(lambda _: 1)})
        for blank in (" ", "\t", "\r\n"):
            self.assert_end(self.run_job(self.job(step("help.get")),
                                         env={"SBA_MCP_GATEWAY_URL": blank,
                                              "ORCHESTRATOR_URL": blank + gateway.origin + blank}), 0)
            server = self.server(model.ending())
            self.assertEqual(self.run_agent(server, env={"INFERENCE_PROXY_URL": blank,
                                                         "OLLAMA_BASE_URL": server.url + blank}).exit, 0)

    def test_one_that_is_no_address_is_named(self):
        for url in ("nonsense", "unix:///a.sock", "ftp://host/", "http://user:pa55word@host/", "http://host:port/",
                    "http+unix://relative/"):
            for variable in ("MCP_GATEWAY_PROXY_URL", "ORCHESTRATOR_URL"):
                outcome = self.run_steps(step("help.get"), env={variable: url})
                self.assertEqual(outcome.steps[0]["error_code"], "invalid_url", url)
                self.assertIn(variable, outcome.message)
                self.assertNotIn("pa55word", outcome.message)

    def test_a_base_address_is_not_probed(self):
        for end in ("", "/", "/v1/mcp/tools/call", "/v1/mcp/tools/call/"):
            gateway = self.gateway(mcp.PlainForm, tools={"help.get": tool(lambda _: 1)})
            outcome = self.run_steps(step("help.get"), env={"ORCHESTRATOR_URL": gateway.origin + end})
            self.assertEqual((outcome.exit, [path for _, path, _, _ in gateway.requests]), (0, ["/v1/mcp/tools/call"]))


class Jobs(NodeCase):
    """Jobs as a node sends them: no ids of steps, `args`, and the node's variables."""
    ENVIRONMENT = {"CYNODE_TASK_ID": "task-1", "CYNODE_JOB_ID": "job-1"}

    def sent(self, *steps, **fields):
        return self.job(*({"type": name, "args": arguments} for name, arguments in steps), **fields)

    def as_node(self, job, *more, **env):
        """With the workspace named by the environment alone, and a result file that is there already."""
        self.result_path.touch()
        self.result_path.chmod(0o666)
        return self.run_job(job, *more, env={**self.ENVIRONMENT, **env})

    def test_an_empty_path_is_the_default(self):
        self.put("a/b", "words\n")
        outcome = self.as_node(self.sent(("list_tree", {"path": ""}),
                                         ("search_files", {"pattern": "words", "path": ""}),
                                         ("run_command", {"argv": ["ls"], "cwd": ""})), SBA_DIRECT_STEPS="1")
        self.assert_end(outcome, 0)
        tree, found, listed = (entry["result"] for entry in outcome.steps)
        self.assertEqual((tree["name"], found["matches"][0]["path"], listed["stdout"]), (".", "a/b", "a\n"))

    def test_absolute_paths(self):
        # Below the workspace as it was named, or as it really is. Any other is refused.
        real = self.workspace
        self.workspace = self.root / "link"
        self.workspace.symlink_to(real)
        for path in (self.workspace / "a.txt", real / "a.txt"):
            outcome = self.assert_end(self.as_node(self.sent(("write_file", {"path": str(path), "content": "x"}),
                                                             ("read_file", {"path": "a.txt"}))), 0)
        outcome = self.as_node(self.sent(("write_file", {"path": "/a.txt", "content": "x"})))
        self.assertEqual(outcome.steps[0]["error_code"], "path_escape")

    @unittest.skipUnless(sba.UID, "wants root")
    def test_a_workspace_that_is_closed_is_named(self):
        # Of another uid than the image's user. An agent's job that only answers ends so too.
        os.chown(self.workspace, 0, 0)
        self.workspace.chmod(0o700)
        for step in (("write_file", {"path": "a", "content": "x"}), ("list_tree", {}), ("run_command", {"shell": ":"})):
            outcome = self.assert_end(self.as_node(self.sent(step)), 2, "environment_invalid")
            self.assertRegex(outcome.message, f"{self.workspace} cannot be entered.*: Permission denied")
        server = self.server(model.ending("It is noon."))
        self.assert_end(self.run_agent(server), 2, "environment_invalid")
        self.assertEqual(server.requests, [])

    def test_steps_may_be_left_out_where_the_mode_says_agent(self):
        for steps in ({}, {"steps": None}, {"steps": []}):
            server = self.server(model.ending("It is noon."), model.ending("It is noon."))
            job = {**self.job(inference={"allowed_models": ["m"]}), "steps": None, **steps}
            if not steps:
                del job["steps"]
            outcome = self.run_agent(server, job=job, env={"SBA_EXECUTION_MODE": "agent_inference"})
            self.assertEqual((outcome.exit, outcome.answer, outcome.stdout), (0, "It is noon.", b""), outcome.result)

    def test_a_job_without_steps_and_models_is_no_mistake_of_the_job(self):
        # Nodes' own tests send such jobs. No model may be named then.
        job = {key: value for key, value in self.job().items() if key != "steps"}
        outcome = self.as_node(job, SBA_EXECUTION_MODE="agent_inference", INFERENCE_PROXY_URL=self.server().url)
        self.assert_end(outcome, 75, "inference_unavailable")

    def test_cynode_sba_as_the_only_argument(self):
        outcome = self.run_job(self.sent(("run_command", {"argv": ["true"]})), env={
            "SBA_JOB_PATH": str(self.job_directory / "job.json"), "SBA_RESULT_PATH": str(self.result_path),
            "CYNODE_WORKSPACE_DIR": str(self.workspace)},
            arguments=["cynode-sba"])
        self.assertEqual((outcome.exit, outcome.stdout), (0, b""), outcome.stderr)

    def test_the_persona_of_the_context(self):
        server = self.server(model.ending(), model.ending())
        job = self.agent_job(context={"persona_title": "The Gardener", "persona_description": "Tends beds."})
        for more in ({}, {"persona": {"title": "The Smith"}}):
            self.run_agent(server, job={**job, **more})
        for title, body in zip(("The Gardener", "The Smith"), server.chats(), strict=True):
            start = f"## Persona\n\n{title}\n\nTends beds.\n\n## Baseline"
            self.assertTrue(body["messages"][0]["content"].startswith(start))


sba.main(__name__)
