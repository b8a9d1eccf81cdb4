# SPDX-License-Identifier: Apache-2.0
"""The runner's model client against a scripted server that says exactly what a test wants, each fault of the wire among
it. Every request goes through the binary; chat.lua beside this file connects, asks and prints."""
import json
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.parse

import sba
from agent_case import FORMATS
from servers import model

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = [{"name": "read_file", "description": "Read a file.",
          "parameters": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}},
         {"name": "finish", "description": "End the job.", "parameters": {"type": "object", "properties": {}}}]
CALL = {"name": "read_file", "arguments": {"path": "a.c"}}
HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]
QUICK = {"first": 0.01, "longest": 0.05}  # waits between tries


class Run:
    def __init__(self, stdout):
        lines = [json.loads(line) for line in stdout.splitlines()]
        self.answers = [line for line in lines if "reply" in line or "failure" in line]
        self.sessions = [line["session"] for line in lines if "session" in line]
        self.waits = [line["wait"] for line in lines if "wait" in line]

    @property
    def reply(self):
        return self.answers[0]["reply"]

    @property
    def failure(self):
        return self.answers[0]["failure"]


class InferenceCase(sba.SandboxCase):
    def server(self, *replies, models=None, listen="127.0.0.1:0", **script):
        models = {"m": {}} if models is None else models
        return self.closing(model.Server({"models": models, "replies": list(replies), **script}, listen))

    @staticmethod
    def plan(environment, *requests, allowed=("m",), policy=None, deadline=None, **options):
        plan = {"deadline": deadline, "requests": [{"messages": HELLO, **request} for request in requests],
                "options": {"environment": environment, "allowed_models": list(allowed),
                            "policy": {**QUICK, **(policy or {})}, **options}}
        plan = {name: value for name, value in plan.items() if value is not None}
        return ["--lua", str(HERE / "chat.lua"), json.dumps(plan)]

    def start_plan(self, *arguments, **options):
        return subprocess.Popen([sba.BINARY, *self.plan(*arguments, **options)], stdout=subprocess.PIPE)

    def run_plan(self, *arguments, **options):
        done = sba.run(*self.plan(*arguments, **options))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return Run(done.stdout)

    def chat(self, server, form, *requests, **options):
        variable, suffix = FORMATS[form]
        return self.run_plan({variable: server.url + suffix}, *(requests or [{"tools": TOOLS}]), **options)

    def each(self, *replies, requests=(), models=None, **options):
        """The same script in both formats: yields form, server and run."""
        for form in FORMATS:
            server = self.server(*replies, models=models)
            try:
                yield form, server, self.chat(server, form, *requests, **options)
            except GeneratorExit:
                print(f"failed with the format {form}", file=sys.stderr)
                raise

    def assert_call(self, reply, arguments=CALL["arguments"]):
        (call,) = reply["tool_calls"]
        self.assertEqual((call["name"], call["arguments"], bool(call["id"])), ("read_file", arguments, True))


class Replies(InferenceCase):
    def test_content_thinking_and_calls_of_a_stream(self):
        reply = {"content": "I look.", "thinking": "hm, hm, hm", "tool_calls": [CALL], "prompt_tokens": 50,
                 "completion_tokens": 9}
        for _, _, run in self.each(reply):
            self.assert_call(run.reply)
            self.assertEqual((run.reply["content"], run.reply["thinking"]), ("I look.", "hm, hm, hm"))
            self.assertEqual((run.reply["prompt_tokens"], run.reply["completion_tokens"]), (50, 9))
            self.assertEqual(run.answers[0]["text"], "I look.")

    SHAPES = {
        "on the last line": ({"tool_calls": [CALL], "fault": "calls_on_done"}, {}),
        "arguments as the other format has them": ({"tool_calls": [CALL], "fault": "arguments_swapped"}, {}),
        "not streamed": ({"content": "hello", "tool_calls": [CALL], "fault": "not_streamed"}, {"content": "hello"}),
        "byte by byte": ({"content": "grüße \U0001F600", "tool_calls": [CALL], "fault": "byte_by_byte"},
                         {"content": "grüße \U0001F600"}),
        "lines that end CR LF": ({"content": "hello", "tool_calls": [CALL], "fault": "crlf"}, {"content": "hello"}),
        "text of a model that knows better": (
            {"content": '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.c"}}\n</tool_call>'}, {})}

    def test_a_call_in_every_shape(self):
        for name, (said, wanted) in self.SHAPES.items():
            for form, _, run in self.each(said):
                with self.subTest(name, form=form):
                    self.assert_call(run.reply)
                    self.assertEqual({field: run.reply[field] for field in wanted}, wanted)

    def test_a_call_cut_for_its_length_is_left_out(self):
        for _, _, run in self.each({"tool_calls": [CALL], "content": "so", "done_reason": "length"}):
            self.assertEqual((run.reply["tool_calls"], run.reply["done_reason"]), ([], "length"))

    def test_a_history_of_calls_and_results_is_sent_as_each_format_wants(self):
        history = HELLO + [{"role": "assistant", "content": "", "thinking": "hm",
             "tool_calls": [{"id": "call_1", "name": "read_file", "arguments": {"path": "a.c"}, "size": 14},
                            {"id": "call_2", "name": "finish", "arguments": {}, "size": 2}]},
            {"role": "tool", "tool_call_id": "call_1", "tool_name": "read_file", "content": "int a;", "step": "step-1"},
            {"role": "tool", "tool_call_id": "call_2", "tool_name": "finish", "content": "no"}]
        sent = {form: server.chats()[0] for form, server, _ in
                self.each({"content": "ok"}, requests=[{"messages": history, "tools": TOOLS, "max_tokens": 99}])}
        self.assertEqual(sent["ollama"]["messages"][2]["tool_calls"], [
            {"id": "call_1", "function": {"index": 0, "name": "read_file", "arguments": {"path": "a.c"}}},
            {"id": "call_2", "function": {"index": 1, "name": "finish", "arguments": {}}}])
        self.assertEqual(sent["ollama"]["messages"][2]["thinking"], "hm")
        self.assertEqual(sent["ollama"]["messages"][3], {
            "role": "tool", "tool_call_id": "call_1", "tool_name": "read_file", "content": "int a;"})
        self.assertEqual(sent["ollama"]["options"], {"num_ctx": 32768, "num_predict": 99})
        calls = sent["openai"]["messages"][2]["tool_calls"]
        self.assertEqual([call["function"]["arguments"] for call in calls], ['{"path":"a.c"}', "{}"])
        self.assertEqual(sent["openai"]["max_tokens"], 99)
        for body in sent.values():
            self.assertEqual(body["tools"][0]["function"]["parameters"], TOOLS[0]["parameters"])
            self.assertEqual(body["tools"][1]["function"]["parameters"], {"type": "object", "properties": {}})
            self.assertNotIn(None, body.values())

    def test_no_tools_and_a_schema_for_the_content(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        for form, server, run in self.each({"content": '{"n": 1}'}, requests=[{"json_schema": schema}]):
            body = server.chats()[0]
            bound = body["format"] if form == "ollama" else body["response_format"]["json_schema"]["schema"]
            self.assertEqual((bound, "tools" in body, run.reply["content"]), (schema, False, '{"n": 1}'))


class Broken(InferenceCase):
    """Streams that end before their end: never an answer, tried again."""

    def test_a_stream_that_breaks_off(self):
        for fault in ("no_done", "cut_midline", "unended", "error_midstream", "noise"):
            for form, server, run in self.each({"content": "half of it", "tool_calls": [CALL], "fault": fault},
                                               {"content": "whole"}):
                with self.subTest(fault, form=form):
                    self.assertEqual((run.reply["content"], run.reply["tool_calls"]), ("whole", []))
                    self.assertEqual((len(server.chats()), len(run.waits)), (2, 1))
                    self.assertEqual(*server.chats())

    def test_silence_in_the_middle(self):
        for _, server, run in self.each({"content": "half of it", "fault": {"name": "pause", "seconds": 30}},
                                        {"content": "whole"}, timeout={"idle": 1}):
            self.assertEqual((run.reply["content"], len(server.chats())), ("whole", 2))

    def test_a_first_byte_after_long_silence_is_waited_for(self):
        for _, server, run in self.each({"content": "late", "fault": {"name": "silence", "seconds": 1.5}},
                                        timeout={"idle": 1, "first": 20}):
            self.assertEqual((run.reply["content"], len(server.chats())), ("late", 1))


class Refusals(InferenceCase):
    @staticmethod
    def status(status, body, **more):
        return {"name": "status", "status": status, "body": body, **more}

    def test_each_has_its_cause_and_as_many_tries_as_may_help(self):
        # What is not explained is sent once more as it was, then with its tools as text.
        without_tools = {"requests": [{}]}
        for fault, tries, cause, words, options in (
                ("busy", 4, "refused", ["status 503", "server busy"], {"policy": {"tries": 4}}),
                (self.status(500, '{"error":"odd"}'), 4, "refused", ["odd"], {"policy": {"tries": 3}}),
                ("bad_request", 3, "refused", ["status 400", "cannot unmarshal"], {}),
                ("bad_request", 2, "refused", ["status 400", "cannot unmarshal"], without_tools),
                (self.status(400, '{"error":"a\\u001b[2Jb\\nc"}'), 2, "refused", [r"a\x1b[2Jb c"], without_tools),
                (self.status(403, ""), 1, "refused", ["status 403", "an empty answer"], {}),
                ("model_missing", 1, "model_missing", ["status 404", "model 'm' not found"], {}),
                (self.status(502, "<html>\n<h1>Bad gateway</h1>", kind="text/html"), 2, "refused", ["an HTML page"],
                 {"policy": {"tries": 2}}),
                ("html", 1, "bad_answer", ["an HTML page"], {}),
                ("invalid_json", 1, "bad_answer", ["not JSON"], {}),
                ("huge", 1, "too_large", ["more than"], {}),
                ({"name": "huge", "bytes": 50 << 20}, 1, "too_large", ["more than"], {}),
                ("endless", 1, "too_large", ["a reply of more than 4194304 bytes"], {})):
            for form, server, run in self.each(*[{"fault": fault}] * 5, **options):
                with self.subTest(form, fault=fault):
                    self.assertEqual((run.failure["code"], run.failure["cause"]), ("inference_unavailable", cause))
                    self.assert_says(run.failure["message"], *words)
                    self.assertNotIn("\n", run.failure["message"])
                    self.assertEqual(len(server.chats()), tries)

    def test_a_schema_that_is_refused_without_a_name(self):
        # Those of the gateway are then told in words: of our own every server takes the schemas.
        either = {"type": "object", "properties": {"tag": {"type": ["string", "integer"]}}}
        tools = [*TOOLS, {"name": "mark", "exact": True, "description": "Marks.", "parameters": either}]
        refused = self.status(400, '{"error":"parameters are not a valid JSON schema: at properties.tag"}')
        for _, server, run in self.each({"fault": refused}, {"content": "hello"}, requests=[{"tools": tools}]):
            first, second = ([tool["function"]["parameters"]["properties"] for tool in body["tools"]]
                for body in server.chats())
            self.assertEqual((run.reply["content"], second), ("hello", [*first[:2], {}]))

    def test_busy_is_tried_again_with_growing_waits(self):
        for _, server, run in self.each(*[{"fault": "busy"}] * 3, {"content": "hello"}, policy={"longest": 1}):
            self.assertEqual((run.reply["content"], len(server.chats())), ("hello", 4))
            self.assertEqual(run.waits, sorted(run.waits))

    def test_a_wait_that_the_server_asks_for_is_honoured(self):
        for _, _, run in self.each({"fault": {"name": "rate_limited", "retry_after": 1}}, {"content": "hello"}):
            self.assertEqual(run.reply["content"], "hello")
            self.assertGreaterEqual(run.waits[0], 1)

    def test_a_wait_past_the_deadline_is_not_begun(self):
        started = time.monotonic()
        for _, server, run in self.each({"fault": {"name": "rate_limited", "retry_after": 3600}}, deadline=20):
            self.assertEqual((run.failure["code"], run.failure["cause"]), ("inference_unavailable", "refused"))
            self.assertIn("time is up in", run.failure["message"])
        self.assertLess(time.monotonic() - started, 15)

    def test_a_quota_is_not_waited_for(self):
        server = self.server({"fault": "quota"})
        self.assertEqual(self.chat(server, "openai").failure["cause"], "quota")
        self.assertEqual(len(server.chats()), 1)


class Windows(InferenceCase):

    def test_the_window_is_found_out_and_asked_for(self):
        # Of Ollama's Modelfile, of its model, and where neither says it; and of an OpenAI server's list of models.
        for form, model, window, says_tools in (("ollama", {"num_ctx": 8192, "context_length": 131072}, 8192, True),
                ("ollama", {"context_length": 4096}, 4096, True),
                ("ollama", {"context_length": None, "capabilities": None}, 8192, False),
                ("openai", {"max_model_len": 20000}, 20000, False)):
            server = self.server({"content": "a"}, {"content": "b"}, models={"m": model})
            run = self.chat(server, form, {}, {})
            self.assertEqual((run.sessions[0]["context_length"], "supports_tools" in run.sessions[0]),
                             (window, says_tools))
            if form == "ollama":
                self.assertEqual([(body["options"]["num_ctx"], body["truncate"]) for body in server.chats()],
                                 [(window, False)] * 2)

    def test_a_refusal_for_the_prompts_length(self):
        for _, server, run in self.each({"fault": {"name": "context_exceeded", "window": 6000}}):
            self.assertEqual((run.failure["code"], run.failure["context_length"], len(server.chats())),
                             ("context_cut", 6000, 1))
            self.assertEqual(run.sessions[1]["context_length"], 6000)


class WithoutTools(InferenceCase):
    TEXT = json.dumps({"thought": "I look.", "tool": "read_file", "arguments": {"path": "a.c"}})

    def bound(self, form, body):
        return body["format"] if form == "ollama" else body["response_format"]["json_schema"]["schema"]

    def test_what_the_model_can_is_asked_before(self):
        server = self.server({"content": self.TEXT}, models={"m": {"capabilities": ["completion"]}})
        run = self.chat(server, "ollama")
        self.assert_call(run.reply)
        self.assertEqual((run.reply["content"], len(server.chats())), ("I look.", 1))
        self.assertEqual(run.sessions[0]["supports_tools"], False)

    def test_a_refusal_turns_the_session(self):
        models = {"m": {"capabilities": None, "tools": False}}
        for form, server, run in self.each({"content": self.TEXT}, {"content": self.TEXT}, models=models,
                                           requests=[{"tools": TOOLS}, {"tools": TOOLS}]):
            self.assert_call(run.reply)
            first, *others = server.chats()
            self.assertIn("tools", first)
            self.assertEqual((len(others), run.waits, run.sessions[1]["supports_tools"]), (2, [], False))
            for body in others:
                self.assertNotIn("tools", body)
                self.assertEqual([branch["properties"]["tool"]["enum"] for branch in self.bound(form, body)["anyOf"]],
                                 [["read_file"], ["finish"]])
                self.assertIn("### read_file", body["messages"][0]["content"])
        silent = self.server({"fault": {"name": "silence", "seconds": 9}}, models=models)
        self.assertEqual(self.chat(silent, "openai", deadline=2).failure["code"], "timeout")

    def test_a_server_that_cannot_bind_a_reply(self):
        text = "response_format: json_schema is not supported (no grammar)"
        replies = {"fault": {"name": "bad_request", "text": text}}, {"content": f"```json\n{self.TEXT}\n```"}
        for _, server, run in self.each(*replies, models={"m": {"capabilities": None, "tools": False}}):
            self.assert_call(run.reply)
            self.assertTrue({"format", "response_format"}.isdisjoint(server.chats()[-1]))


class Endpoints(InferenceCase):
    def dead(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            return f"http://127.0.0.1:{taken.getsockname()[1]}"

    def failed(self, environment, **options):
        run = self.run_plan(environment, {}, **options)
        self.assertEqual(run.failure["code"], "inference_unavailable")
        return run.failure

    def test_dead_endpoints_are_all_named(self):
        one, other = self.dead(), self.dead()
        addresses = {"INFERENCE_PROXY_URL": one, "SBA_API_EGRESS_URL": other + "/secret/path?key=1"}
        message = self.failed(addresses)["message"]
        self.assertRegex(message, f"INFERENCE_PROXY_URL: .*{one}.*; SBA_API_EGRESS_URL: .*{other}")
        self.assertNotIn("secret", message)

    def test_a_unix_socket(self):
        for form in FORMATS:
            server = self.server({"content": "hello", "tool_calls": [CALL]}, listen=f"unix:{self.root}/{form} %.sock")
            self.assert_call(self.chat(server, form).reply)

    def missing_socket(self):
        return f"http+unix://{urllib.parse.quote(f'{self.root}/none.sock', safe='')}"

    def test_a_worker_address_that_is_dead_or_serves_nothing_allowed(self):
        # The public node names a socket that it never shares.
        socket, other = self.missing_socket(), self.server(models={"other": {}})
        server = self.server({"content": "hello"}, {"content": "hello"})
        for first in (socket, other.url):
            run = self.run_plan({"INFERENCE_PROXY_URL": first, "OLLAMA_BASE_URL": server.url}, {}, source="worker")
            self.assertEqual((run.reply["content"], run.waits), ("hello", []))
        message = self.failed({"INFERENCE_PROXY_URL": socket, "OLLAMA_BASE_URL": other.url}, source="worker")["message"]
        self.assertRegex(message, "INFERENCE_PROXY_URL: .*none.sock.*; OLLAMA_BASE_URL: .* serves none of the allowed "
                                  "models .*; the sidecar: .*http://localhost:11434 ")

    @unittest.skipUnless(sba.MAY_MOUNT and sba.may("unshare", "-n", "true"), "wants a network of its own")
    def test_the_sidecar_in_the_pod(self):
        # It listens where the node's own runner looks; nothing names it.
        script = f"""ip link set lo up && PYTHONPATH={HERE.parent} python3 -c '
import subprocess, sys
from servers import model
with model.Server({{"models": {{"m": {{}}}}, "replies": [{{"content": "hello"}}]}}, "127.0.0.1:11434"):
    sys.exit(subprocess.run(sys.argv[1:]).returncode)' "$@" """
        alone = ["unshare", "-n", "sh", "-ec", script, "sh", *sba.AS_USER, sba.BINARY]
        for environment in ({}, {"INFERENCE_PROXY_URL": self.missing_socket()}):
            done = subprocess.run([*alone, *self.plan(environment, {})], stdout=subprocess.PIPE, check=True, timeout=60)
            self.assertEqual(Run(done.stdout).reply["content"], "hello")

    def test_the_first_allowed_model_that_is_served(self):
        models = {"small:latest": {}, "big:70b": {}, "other": {}}
        for preferred, allowed, wanted in (
                (None, ["none", "small", "big:70b"], "small"), ("big:70b", ["small", "big:70b"], "big:70b"),
                ("other", ["small"], "small"), ("small:latest", ["big:70b", "small"], "small"),
                ("none", ["none", "big:70b"], "big:70b")):
            server = self.server({"content": "hello"}, models=models)
            environment = {"OLLAMA_BASE_URL": server.url + "/", **({"INFERENCE_MODEL": preferred} if preferred else {})}
            self.run_plan(environment, {}, allowed=allowed)
            named = {request["body"]["model"] for request in server.requests if request["body"]}
            self.assertEqual(named, {wanted})

    def test_no_allowed_model_is_served(self):
        # Nor by a gateway whose /api/tags is other JSON, and that lists models as OpenAI does: it gets no Ollama chat.
        for tags, requests in ((None, 1), ({"team": "a"}, 3)):
            server = self.server(models={"a": {}, "b": {}})
            server.tags = lambda _, usual=server.tags, tags=tags: (200, tags) if tags else usual(_)
            failure = self.failed({"OLLAMA_BASE_URL": server.url}, allowed=["x", "y"])
            self.assertIn("serves none of the allowed models (x and y); it has a and b", failure["message"])
            self.assertEqual([request["body"] for request in server.requests], [None] * requests)

    def test_a_worker_that_is_no_ollama_and_addresses_without_v1(self):
        for variable, suffix in (("OLLAMA_BASE_URL", ""), ("OLLAMA_BASE_URL", "/v1"), ("SBA_API_EGRESS_URL", "")):
            server = self.server({"content": "hello"}, formats=["openai"])
            self.assertEqual(self.run_plan({variable: server.url + suffix}, {}).reply["content"], "hello")

    def test_an_egress_address_that_names_the_chat(self):
        server = self.server(*[{"content": "hello"}] * 2)
        for suffix in ("", "/"):
            run = self.run_plan({"SBA_API_EGRESS_URL": server.url + "/v1/chat/completions" + suffix}, {})
            self.assertEqual(run.reply["content"], "hello")
        # Nothing is added to it, though only the address with /v1 lists models here.
        self.failed({"SBA_API_EGRESS_URL": server.url + "/chat/completions"})
        paths = {request["path"] for request in server.requests}
        self.assertEqual({path for path in paths if path.endswith("/chat/completions")},
                         {"/v1/chat/completions", "/chat/completions"})

    def test_an_egress_that_lists_no_models(self):
        server = self.server({"fault": "model_missing"}, {"content": "hello"}, models={"a": {}, "m": {}},
                             probe_fault={"name": "status", "status": 404, "body": "no"})
        run = self.run_plan({"SBA_API_EGRESS_URL": server.url + "/v1"}, {}, allowed=["a", "m"])
        self.assertEqual([body["model"] for body in server.chats()], ["a", "m"])
        self.assertEqual((run.reply["content"], run.sessions[1]["model"]), ("hello", "m"))

    def test_a_server_that_starts_late(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        process = self.start_plan({"OLLAMA_BASE_URL": f"http://127.0.0.1:{port}"}, {},
                                  policy={"first": 2, "longest": 2})
        first = process.stdout.readline()
        server = self.server({"content": "hello"}, listen=f"127.0.0.1:{port}")
        stdout, _ = process.communicate(timeout=300)  # it hangs: nothing here is measured
        self.assertIn("wait", json.loads(first))
        self.assertEqual(Run(stdout).reply["content"], "hello")
        self.assertEqual(len(server.chats()), 1)


class Interrupts(InferenceCase):
    def test_the_deadline_ends_the_search_for_a_model(self):
        server = self.server(probe_fault={"name": "silence", "seconds": 60})
        for environment in ({"OLLAMA_BASE_URL": server.url}, {"OPENAI_BASE_URL": server.url + "/v1"}):
            self.assertEqual(self.run_plan(environment, {}, deadline=0.5).failure["code"], "timeout")

    def test_a_slow_reply_is_ended_by_the_deadline_not_by_its_silence(self):
        for _, _, run in self.each({"content": "half of it", "fault": {"name": "endless", "pause": 0.5}}, deadline=2):
            self.assertEqual(run.failure["code"], "timeout")

    def test_sigterm_ends_every_wait(self):
        for form, (variable, suffix) in FORMATS.items():
            for fault in ({"name": "silence", "seconds": 60}, {"name": "pause", "seconds": 60},
                          {"name": "endless", "pause": 0.02}, {"name": "rate_limited", "retry_after": 60}):
                server = self.server({"content": "half of it", "fault": fault})
                process = self.start_plan({variable: server.url + suffix}, {})
                sba.wait_for(server.chats, "a request to the model")
                time.sleep(0.1)
                started = time.monotonic()
                process.send_signal(signal.SIGTERM)
                stdout, _ = process.communicate(timeout=30)
                with self.subTest(form=form, fault=fault):
                    self.assertLess(time.monotonic() - started, 20)
                    self.assertEqual(Run(stdout).failure["code"], "cancelled")


sba.main(__name__)
