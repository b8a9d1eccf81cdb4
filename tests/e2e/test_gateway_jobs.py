# SPDX-License-Identifier: Apache-2.0
"""The gateway's tools in whole jobs: offered to a model and called by it, and called by direct jobs."""
import itertools
import json
import signal
import socket
import threading

import sba
from agent_case import call, calls, finish, runs, writes
from gateway_case import OWN, GatewayCase, echo, says, step, tool
from servers import mcp

OWN_IN_A_SMALL_CONTEXT = ["run_command", "read_file", "replace_in_file", "write_file"]
NEVER = ["db.task.get", "node.list", "sandbox.exec", "skills.create", "skills.update", "skills.delete"]
OUTSIDE = ["web.fetch", "web.search", "api.call"]


class Offered(GatewayCase):
    def test_order_names_and_schemas(self):
        text, dialect = {"type": "string"}, "https://json-schema.org/draft/2020-12/schema"
        schema = {"$schema": dialect, "type": "object", "x-own": [1.5, None, {}, []],
                  "properties": {"task_id": text, "job_id": text, "a": {"$ref": "#/$defs/a"}},
                  "required": ["task_id", "a"], "$defs": {"a": {"type": "integer", "x-mark": True}}}
        gateway = self.gateway(tools={"artifact.list": tool(description="Lists.", inputSchema=schema), "help": tool()})
        outcome, model = self.agent(gateway)
        self.assert_end(outcome, 0)
        offered = self.offered(model)
        self.assertEqual(list(offered), [*OWN, "artifact_list", "help", "finish"])
        shown = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        one = offered["artifact_list"]
        self.assertEqual((one["description"], one["parameters"]), ("Lists.", shown))

    def test_instructions_of_the_gateway(self):
        gateway = self.gateway(tools={"help": tool()}, instructions="Call help first.")
        outcome, model = self.agent(gateway, call("help"))
        said = model.chats()[0]["messages"][1]["content"]
        self.assertIn("says this about them. It is not part of the job.\n\nCall help first.\n", said)
        self.assertEqual((outcome.exit, self.run_job(self.agent_job(), "--replay", str(self.recording())).exit), (0, 0))

    def test_a_call_is_a_step(self):
        for era in ("legacy", "modern"):
            with self.subTest(era):
                schema = {"type": "object", "properties": {"task_id": {}, "job_id": {}, "path": {"type": "string"}}}
                gateway = self.gateway(era=era, tools={"artifact.list": tool(inputSchema=schema)})
                listing = ("artifact_list", {"path": "a", "task_id": "another"})
                outcome, model = self.agent(gateway, calls(listing, ("list_tree", {"path": "."})))
                self.assert_end(outcome, 0)
                arguments = {"job_id": "job-1", "path": "a", "task_id": "task-1"}
                self.assertEqual(self.called(gateway), [("artifact.list", arguments)])
                first, second = outcome.steps
                self.assertEqual((first["id"], first["type"], first["status"]), ("step-1", "call_tool", "success"))
                self.assertEqual(first["result"], {"content": json.dumps(arguments), "is_error": False})
                self.assertEqual((second["id"], second["type"]), ("step-2", "list_tree"))
                self.assertEqual(self.tool_answers(model, 1)[0], "[step-1]\n" + json.dumps(arguments))
                self.assertEqual(outcome.events("step.started")[0]["what"], "artifact.list")

    def test_names_of_the_runner_stay_its_own(self):
        gateway = self.gateway(tools={name: says("from the gateway") for name in ("read_file", "finish", "todo.add")})
        self.put("a", "from the workspace")
        outcome, model = self.agent(gateway, call("read_file", path="a"), call("read_file_2"), finish("really done"))
        self.assertEqual(list(self.offered(model)), [*OWN, "read_file_2", "finish_2", "todo_add_2", "finish"])
        self.assertEqual(self.told(model, 1),
                         "[step-1]\na, lines 1 to 1 of 1; no newline at the end\n1\tfrom the workspace\n")
        self.assertEqual(self.told(model, 2), "[step-2]\nfrom the gateway")
        self.assertEqual(outcome.answer, "really done")

    def test_the_plain_form_offers_the_workers_tools(self):
        gateway = self.gateway(mcp.PlainForm, tools={"help.get": tool(lambda e: {"got": e.message["arguments"]})})
        outcome, model = self.agent(gateway, call("help_get", topic="x"), call("skills_list"))
        workers = [name.replace(".", "_") for name in mcp.WORKER_TOOLS]
        self.assertEqual(list(self.offered(model)), [*OWN, *workers, "finish"])
        self.assertEqual(self.told(model, 1), '[step-1]\n{"got":{"task_id":"task-1","topic":"x"}}')
        self.assertRegex(self.told(model, 2),
                         r"\[step-2\]\nfailed \(tool_unavailable\): .*501.*not implemented: skills\.list")
        self.assert_end(outcome, 0)

    def test_ten_thousand_tools(self):
        useful = tool(description="Does something of use.")
        gateway = self.gateway(tools={f"tool.{number}": useful for number in range(10000)})
        for length, most, own in ((131072, 128, OWN), (8192, 64, OWN_IN_A_SMALL_CONTEXT)):
            outcome, model = self.agent(gateway, call("tool_0"), models={"m": {"context_length": length}})
            self.assertEqual((outcome.exit, outcome.steps[0]["status"]), (0, "success"), outcome.result)
            offered = list(self.offered(model))
            self.assertEqual([*offered[:len(own) + 1], offered[-1]], [*own, "tool_0", "finish"])
            self.assertLessEqual(len(offered), most)
            self.assertGreater(len(offered), 20)
            (said,) = outcome.events("gateway.tools")
            given = len(offered) - len(own) - 1
            self.assertEqual((said["level"], said["tools"], said["left_out"]), ("warning", given, 10000 - given))

    def test_a_tool_that_is_too_large_does_not_keep_out_the_others(self):
        gateway = self.gateway(tools={"huge": tool(description="x" * 1000000), "small": tool()})
        outcome, model = self.agent(gateway)
        self.assertEqual(list(self.offered(model)), [*OWN, "small", "finish"])
        self.assertIn("huge: there is no room", outcome.events("gateway.tools")[0]["error"])


class ChangedLists(GatewayCase):
    """A server whose tool `swap` gives it other tools, of which it tells in the answer or on its own stream."""
    CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    def swapping(self, *others, on_own_stream=False, **options):
        swapped = threading.Event()

        def swap(exchange):
            gateway.tools = dict(others)
            exchange.begin_events()
            if not on_own_stream:
                exchange.event(self.CHANGED)
            exchange.event(exchange.result(mcp.text("swapped")))
            swapped.set()

        def get(exchange):
            exchange.begin_events()
            swapped.wait(20)
            exchange.event(self.CHANGED)
            exchange.rfile.read(1)
        gateway = self.gateway(tools={"swap": tool(swap)}, get=get if on_own_stream else None, **options)
        return gateway

    def test_the_model_gets_the_new_tools(self):
        for era, on_own_stream in (("legacy", False), ("legacy", True), ("modern", False)):
            with self.subTest(era=era, on_own_stream=on_own_stream):
                gateway = self.swapping(("a.other", says("from the other")), on_own_stream=on_own_stream, era=era)
                pause = runs("sleep 0.3")  # until then the server's own stream has it
                outcome, model = self.agent(gateway, call("swap"), pause, call("swap"), call("a_other"))
                self.assertEqual([list(self.offered(model, number))[len(OWN):-1] for number in (0, 2, 4)],
                                 [["swap"], ["a_other"], ["a_other"]])
                self.assertRegex(self.told(model, 3), r"(?s)failed \(unknown_tool\): .* has no tool swap for this job")
                self.assertEqual(self.told(model, 4), "[step-4]\nfrom the other")
                self.assertEqual([name for name, _ in self.called(gateway)], ["swap", "a.other"])
                # At the beginning, after the change, and for the call of what is gone.
                self.assertEqual(len(gateway.messages("tools/list")), 3)
                replayed = self.run_job(self.agent_job(), "--replay", self.recording())
                self.assertEqual(sba.timeless(replayed.result), sba.timeless(outcome.result))

    def test_a_resumed_run_has_them_too(self):
        gateway = self.swapping(("a-b", says("ab")), ("wait", tool(mcp.silence)))
        model = self.server(call("swap"), call("wait"))
        self.run_and_signal(self.agent_job(), signal.SIGKILL, lambda: len(gateway.messages("tools/call")) == 2,
                            "the second call", env={"OLLAMA_BASE_URL": model.url, **self.names(gateway)})
        model = self.server(call("a-b"), finish("went on"))
        self.assert_answer(self.run_agent(model, "--resume", env=self.names(gateway)), "went on")
        self.assertEqual(list(self.offered(model)), [*OWN, "a-b", "wait", "finish"])
        self.assert_end(self.run_job(self.agent_job(), "--replay", self.recording()), 0)

    def test_a_list_that_cannot_be_read_changes_nothing(self):
        def refuse(exchange):
            return len(gateway.messages("tools/list")) > 1 and (exchange.whole(None, 500) or True)
        gateway = self.swapping(("other", says("")), hook=mcp.only("tools/list", refuse))
        outcome, model = self.agent(gateway, call("swap"), call("other"))
        self.assert_end(outcome, 0)
        self.assertEqual(list(self.offered(model, 1)), [*OWN, "swap", "finish"])
        self.assertIn(b"gateway.failed", outcome.stderr)


class Trouble(GatewayCase):
    def test_a_gateway_that_is_not_there(self):
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        outcome, model = self.agent(f"http://127.0.0.1:{port}/mcp")
        self.assert_end(outcome, 0)
        (said,) = outcome.events("gateway.failed")
        self.assertEqual((said["level"], said["code"]), ("warning", "connection_refused"))
        self.assertIn(f"127.0.0.1:{port}", said["error"])
        self.assertEqual(len(self.offered(model)), len(OWN) + 1)

    def test_tools_that_do_not_exist_refuse_or_fail(self):
        gateway = self.gateway(tools={"strict": tool(lambda e: e.refuse(-32602, "a is missing", 200)),
                                      "broken": says("no such\nartifact", isError=True),
                                      "long": says("x" * 2000, isError=True)})
        outcome, model = self.agent(gateway, call("invented"), call("strict", b=1), call("broken"), call("long"))
        self.assert_end(outcome, 0)
        unknown, refused, broken, long = (self.told(model, number) for number in range(1, 5))
        self.assertRegex(unknown, "failed: unknown tool invented; the tools are .*strict, broken, long, finish")
        self.assertRegex(refused, r"\[step-1\]\nfailed \(tool_refused\): .*-32602: a is missing")
        self.assertEqual(broken, "[step-2]\nfailed (step_failed): the tool broken failed: no such artifact")
        self.assertTrue(long.endswith("\n" + "x" * 2000))
        self.assertEqual(outcome.statuses, ["failure"] * 3)
        self.assertEqual(outcome.steps[1]["result"], {"content": "no such\nartifact", "is_error": True})

    def test_a_server_that_goes_in_the_middle(self):
        def go(exchange):
            owner.close()
            exchange.close_connection = True
            exchange.connection.shutdown(socket.SHUT_RDWR)
        owner = mcp.Server(tools={"go": tool(go), "stay": tool()})
        outcome, model = self.agent(owner, call("stay", a=1), call("go"), call("stay", a=2))
        self.assertEqual((outcome.exit, outcome.statuses), (0, ["success", "failure", "failure"]), outcome.result)
        self.assertEqual(len(owner.messages("tools/call")), 2)
        self.assertRegex(self.told(model, 2), r"failed \(cut_off\): .*the call may still have run")
        self.assertIn("connection_refused", self.told(model, 3))

    def test_more_than_a_step_may_return(self):
        gateway = self.gateway(tools={"big": says("ä" * 100000, structuredContent={"a": 1})})
        outcome, _ = self.agent(gateway, call("big"), job=self.agent_job(max_output_bytes=2001))
        self.assertEqual((outcome.exit, outcome.steps[0]["status"]), (0, "success"), outcome.result)
        result = outcome.steps[0]["result"]
        self.assertLessEqual(len(result["content"].encode()), 2001)
        self.assertTrue(outcome.steps[0]["output_truncated"])
        self.assertRegex(result["content"], r"^ä+\n\[\.\.\. \d+ of 200000 bytes left out \.\.\.\]\nä+$")
        self.assertNotIn("structured", result)


class Denied(GatewayCase):
    def forms(self, function=echo):
        options = {"tools": {name: tool(function) for name in [*NEVER, *OUTSIDE, "skills.get"]}}
        return [self.gateway(**options), self.gateway(era="modern", **options), self.gateway(mcp.PlainForm, **options)]

    MAPPED = {name.replace(".", "_") for name in NEVER + OUTSIDE}

    def test_a_model_neither_sees_nor_calls_them(self):
        for gateway in self.forms():
            replies = [call(name) for one in NEVER + OUTSIDE for name in (one, one.replace(".", "_"))]
            # A reply that can be read after each two that cannot, so that the job is not stuck.
            replies = [reply for number in range(0, len(replies), 2)
                       for reply in (*replies[number:number + 2], call("run_command", shell=f"echo {number}"))]
            outcome, model = self.agent(gateway, *replies)
            self.assertFalse(self.MAPPED & self.offered(model).keys())
            self.assertEqual(len(model.chats()), len(replies) + 1, outcome.result)
            self.assertFalse({name for name, _ in self.called(gateway)} & {*NEVER, *OUTSIDE})

    def test_a_model_gets_the_outside_where_it_is_allowed(self):
        for gateway in self.forms(lambda e: mcp.text("fetched")):
            job = self.agent_job(ext_net_allowed=True)
            outcome, model = self.agent(gateway, call("web_fetch", url="x"), job=job)
            self.assertEqual((outcome.exit, self.told(model, 1)), (0, "[step-1]\nfetched"), outcome.result)
            self.assertEqual(self.MAPPED & self.offered(model).keys(), {"web_fetch", "web_search", "api_call"})

    def test_a_direct_job_does_not_call_them(self):
        for gateway in self.forms():
            for name in [*NEVER, " DB.task.get", *OUTSIDE]:
                outcome = self.direct(gateway, step(name), step("skills.get"))
                codes = ("ext_net_required",) * 2 if name in OUTSIDE else ("step_failed", "tool_forbidden")
                self.assertEqual((outcome.exit, outcome.code, outcome.steps[0]["error_code"]), (1, *codes))
                self.assertIn(name.strip().lower(), outcome.message)
            self.assertEqual(self.called(gateway), [])

    def test_what_the_gateway_itself_forbids(self):
        def forbidding(words):
            return tool(lambda e: e.whole({"error": words}, 403))
        for name, words, codes in (("artifact.get", "not your task", ("step_failed", "tool_denied")),
                                   ("web.fetch", "not for you", ("ext_net_required", "ext_net_required")),
                                   ("api.call", "not for you", ("ext_net_required", "ext_net_required")),
                                   ("help.get", "denied: ext_net_required", ("ext_net_required", "ext_net_required"))):
            for kind, allowed in itertools.product((mcp.Server, mcp.PlainForm, mcp.NodeProxy), (False, True)):
                with self.subTest(name, kind=kind, allowed=allowed):
                    gateway = self.gateway(kind, tools={name: forbidding(words)})
                    outcome = self.direct(gateway, step(name), ext_net_allowed=allowed)
                    self.assertEqual((outcome.code, outcome.steps[0]["error_code"]), codes)
                    if allowed or name not in OUTSIDE:  # else it is not called
                        self.assertIn(words, outcome.message)


class Direct(GatewayCase):
    def test_a_call_has_the_ids_that_its_schema_wants_and_gives_text_and_structure(self):
        schema = {"type": "object", "properties": {"task_id": {}, "path": {}}}
        structured, words = {"b": [1, None], "a": {}}, '{"path": "a", "task_id": "task-1"}'
        get = tool(lambda e: {**echo(e), "structuredContent": structured}, inputSchema=schema)
        gateway = self.gateway(tools={"artifact.get": get})
        outcome = self.direct(gateway, step("artifact.get", path="a"), self.step("call_tool", tool="artifact.get"))
        self.assert_end(outcome, 0)
        self.assertEqual(outcome.steps[0]["result"], {"content": words, "structured": structured, "is_error": False})
        self.assertEqual(outcome.steps[0]["output"], words)
        self.assertEqual(self.called(gateway)[1], ("artifact.get", {"task_id": "task-1"}))
        self.assertEqual(gateway.requests[-1][0], "DELETE")
        self.assertFalse(outcome.result["inference_used"])

    def test_a_gateway_that_forbids_everything_is_no_missing_network(self):
        gateway = self.gateway(hook=lambda e: e.whole({"error": "forbidden"}, 403))
        for outcome in (self.direct(gateway, step("x")), self.direct(gateway, step("web.fetch"), ext_net_allowed=True)):
            self.assert_end(outcome, 1, "step_failed", "answered with status 403: forbidden")

    def test_an_answer_that_is_too_long(self):
        wide = tool(lambda _: {"structuredContent": ["y" * 4980]})
        gateway = self.gateway(tools={"big": says("x" * 5000), "wide": wide})
        for name in ("big", "wide"):
            outcome = self.direct(gateway, step(name), max_output_bytes=4000)
            self.assert_end(outcome, 1, "constraint_violation")
            entry = outcome.steps[0]
            self.assertLessEqual(len(entry["result"]["content"]), 4000)
            self.assertNotIn("structured", entry["result"])
            self.assertTrue(entry["output_truncated"])
        self.assertEqual(self.direct(gateway, step("big"), step("wide"), max_output_bytes=5000).exit, 0)

    def test_no_gateway(self):
        outcome = self.direct(None, step("x"))
        self.assertEqual((outcome.exit, outcome.code, outcome.steps[0]["error_code"]), (1, "step_failed", "no_gateway"))
        self.assertIn("SBA_MCP_GATEWAY_URL", outcome.message)

    def test_the_deadline_and_sigterm_in_a_call(self):
        def terminated(gateway):
            return self.run_and_signal(self.job(step("wait")), signal.SIGTERM, lambda: gateway.messages("tools/call"),
                                       "the call", env=self.names(gateway))

        def timed_out(gateway):
            return self.direct(gateway, step("wait"), max_runtime_seconds=2)
        for run, exit, code, status in ((timed_out, 124, "timeout", "timeout"),
                                        (terminated, 143, "cancelled", "failure")):
            gateway = self.gateway(tools={"wait": tool(mcp.silence)})
            outcome = run(gateway)
            self.assert_end(outcome, exit, code)
            self.assertEqual((outcome.status, outcome.steps[0]["status"]), (status, status))
            self.assertTrue(gateway.wait_for(lambda m: m.get("method") == "notifications/cancelled"))


class OtherServers(GatewayCase):
    """What they send has one meaning, though it is not what MCP says."""

    def run_echo(self, echo, **options):
        gateway = self.gateway(tools={"echo": echo}, **options)
        return self.direct(gateway, step("echo")), gateway

    def assert_output(self, output, echo, **options):
        outcome, gateway = self.run_echo(echo, **options)
        self.assert_end(outcome, 0)
        self.assertEqual(outcome.steps[0]["output"], output)
        return gateway

    def test_results(self):
        text = {"type": "text", "text": "words"}
        for result, output in (({"content": "words"}, "words"), ({"content": text}, "words"),
                               ({"content": ["words"]}, "words"), ({"content": [{"text": "words"}]}, "words"),
                               ("words", "words"), ([1, {"a": 2}], '[1,{"a":2}]'), (7, "7"),
                               ({"temperature": 5}, '{"temperature":5}'), ({"content": {"a": 1}}, '{"a":1}'),
                               ({"content": []}, "")):
            with self.subTest(result=result):
                self.assert_output(output, tool(lambda _, result=result: result))
        failed, _ = self.run_echo(tool(lambda _: {"content": "no", "isError": "true"}))
        self.assert_end(failed, 1, "step_failed")

    def test_answers(self):
        def body(form):
            return tool(lambda e: e.whole(form.replace("ID", str(e.message["id"])).encode("latin-1")))
        for form in ('{"jsonrpc":"2.0","id":"ID","result":{"content":"caf\xe9"}}',
                     '{"id":ID.0,"id":ID,"result":{"content":"caf\xe9"}}',
                     '{"content":[{"type":"text","text":"caf\xe9"}]}', '{"result":{"content":"caf\xe9"}}'):
            with self.subTest(form):
                self.assert_output("caf\ufffd", body(form))

        def late(exchange):
            exchange.begin_events()
            exchange.event({"jsonrpc": "2.0", "id": str(exchange.message["id"]), "result": mcp.text("as a text")})
        self.assert_output("as a text", tool(late))

    def test_events(self):
        # Named after their content, under the type of JSON, JSON under the type of events, without the blank line.
        def answering(form, kind="text/event-stream", indent=None):
            return tool(lambda e: e.whole(
                (form % json.dumps(e.result(mcp.text("as an event")), indent=indent)).encode(), 200, kind))
        named = "event: response\r\ndata: %s\r\n\r\n"
        for answer in (answering(named), answering(named, "application/json"), answering("%s", indent=1),
                       answering("data: %s")):
            self.assert_output("as an event", answer)

    def test_lists(self):
        bare = {"name": "echo", "input_schema": {"type": "object"}}
        self.assert_output("here", says("here"), hook=mcp.only("tools/list", lambda e: e.reply([bare])))

    def test_a_lost_session_in_other_words(self):
        for refuse in (lambda e: e.refuse(-32002, "Server not initialized", 200),
                       lambda e: e.refuse(-32600, "Session expired", 401),
                       lambda e: e.whole(b"expect initialize request", 422, "text/plain"),
                       lambda e: e.whole({"error": "HTTP 400: Bad Request: No valid session ID provided"}, 500)):
            def hook(exchange, refuse=refuse):
                if exchange.method != "tools/call" or exchange.headers["Mcp-Session-Id"] != "s-1":
                    return False
                exchange.server.owner.session = "s-2"
                return refuse(exchange)
            gateway = self.assert_output("here", says("here"), hook=hook)
            self.assertEqual(len(gateway.messages("initialize")), 2)

    def test_openings(self):
        def old(exchange):
            if exchange.method == "server/discover":
                return exchange.whole(b"<html>", 500, "text/html")
            offered = exchange.method == "initialize" and exchange.message["params"]["protocolVersion"]
            if offered and offered != "2025-03-26":
                named = b" (supported versions: 2025-03-26, 2024-11-05)" if offered == "2025-06-18" else b""
                return exchange.whole(b"Unsupported protocol version" + named, 400, "text/plain")
            return False
        self.assert_output("here", says("here"), version="2025-03-26", hook=old)

    def test_one_unreadable_tool_does_not_hide_the_others(self):
        deep = '{"type":"object","properties":{"a":' * 80 + "{}" + "}}" * 80
        for schema, names in (('{"type":"object","type":"object"}', {"echo", "odd"}),
                              ('{"properties":[{"a":NaN}]}', {"echo", "odd"}), (deep, {"echo"})):
            def give(exchange, schema=schema):
                tools = '{"name":"odd","inputSchema":%s},{"name":"echo","inputSchema":{"type":"object"}}' % schema
                answer = '{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s]}}' % (exchange.message["id"], tools)
                exchange.whole(answer.encode())
            gateway = self.gateway(tools={"echo": says("here")}, hook=mcp.only("tools/list", give))
            outcome, server = self.agent(gateway, call("echo"))
            self.assert_end(outcome, 0)
            self.assertEqual(self.offered(server).keys() & {"echo", "odd"}, names)
        self.assertIn(b"odd: it is nested more deeply than 60 levels", outcome.stderr)

    def test_a_token_that_is_replaced(self):
        token = self.put(self.root / "token", "the-old-token")
        valid = ["the-old-token"]

        def replace(_):
            valid[0] = "the-new-token"
            token.write_text(valid[0])
            return mcp.text("here")

        def hook(exchange):
            return exchange.headers["Authorization"] != f"Bearer {valid[0]}" and (exchange.whole(None, 401) or True)
        gateway = self.gateway(tools={"echo": tool(replace), "again": says("the-new-token")}, hook=hook)
        outcome = self.assert_end(self.run_steps(step("echo"), step("again"),
                                                 env={**self.names(gateway), "SBA_MCP_TOKEN_FILE": str(token)}), 0)
        self.assertEqual([one["output"] for one in outcome.steps], ["here", "[redacted]"])


class ResumeAndReplay(GatewayCase):
    REPLIES = (call("count"), writes("a", "x"), call("broken"), call("count"))

    def recorded(self):
        numbers = iter(range(1, 100))
        count = tool(lambda _: mcp.text(f"number {next(numbers)}", structuredContent={"z": [], "a": None}))
        gateway = self.gateway(tools={"count": count, "broken": says("it broke", isError=True)})
        outcome, _ = self.agent(gateway, *self.REPLIES)
        self.assert_end(outcome, 0)
        (self.workspace / "a").unlink()
        return outcome, self.recording(), gateway

    def test_a_replay_calls_nothing_and_gives_the_same(self):
        outcome, recording, gateway = self.recorded()
        before = len(gateway.requests)
        for environment in (self.names(gateway), {}):
            again = self.assert_end(self.run_job(self.agent_job(), "--replay", str(recording), env=environment), 0)
            self.assertEqual(sba.timeless(again.result), sba.timeless(outcome.result))
            (self.workspace / "a").unlink()
            recording = self.recording()  # its own journal is a recording as good as the first
        self.assertEqual(len(gateway.requests), before)

    def test_a_killed_run_does_not_call_again(self):
        gateway = self.gateway(tools={"count": says("one"), "wait": tool(mcp.silence)})
        model = self.server(call("count"), call("wait"))
        self.run_and_signal(self.agent_job(), signal.SIGKILL, lambda: len(gateway.messages("tools/call")) == 2,
                            "the second call", env={"OLLAMA_BASE_URL": model.url, **self.names(gateway)})
        gateway.tools = {"another": says("another"), "count": says("two")}
        model = self.server(call("count"), finish("went on"))
        outcome = self.assert_answer(self.run_agent(model, "--resume", env=self.names(gateway)), "went on")
        self.assertEqual([(one["type"], one["status"]) for one in outcome.steps],
                         [("call_tool", "success"), ("call_tool", "failure"), ("call_tool", "success")])
        self.assertEqual(outcome.steps[1]["error_code"], "interrupted")
        self.assertEqual([name for name, _ in self.called(gateway)], ["count", "wait", "count"])
        self.assertEqual(list(self.offered(model)), [*OWN, "count", "wait", "finish"])


sba.main(__name__)
