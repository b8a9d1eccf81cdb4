# SPDX-License-Identifier: Apache-2.0
"""Servers of other habits: what they send for a reply, what they refuse, which lists they have, and how long they take.
Each row is a habit that was seen somewhere; a driver plays a model that writes a file until it is written, then
finishes, in the row's way."""
import json
import time

import sba
from agent_case import AgentCase
from servers import listener, mcp

WRITE, FINISH = ("write_file", {"path": "a.txt", "content": "hello\n"}), ("finish", {"answer": "a.txt is written"})
BAD = ("write_file", json.dumps({"path": "bad.txt", "content": "half"}))
DONE = "data: [DONE]\n\n"
OPEN, CUT = object(), object()  # the connection stays open, or is cut, without the end of the answer


def chunk(delta=None, finish=None, **more):
    return {"choices": [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def part(name=None, arguments=None, index=0, **more):
    return chunk({"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}, **more}]})


def good(name, text):
    pieces = [part(name, "", id="c1", type="function"), part(None, text[:9]), part(None, text[9:])]
    return [*pieces, chunk({}, "tool_calls"), DONE]


def said(text, finish="stop"):
    return [chunk({"content": text}), chunk({}, finish), DONE]


def error(message, **more):
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}}


def whole(name, text):
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


class Server(listener.Listener):
    """answer(body, number) gives (status, Content-Type, parts), or None: silence. Objects become events, text is sent
    as it is."""

    def __init__(self, answer, models=None, **more):
        self.answer, self.bodies, self.models = answer, [], models or (200, {"data": [{"id": "m"}]})
        super().__init__(**more)

    def serve(self, connection):
        while request := listener.read_request(connection):
            head, body = request
            if b"/chat/completions " not in head.split(b"\r\n")[0]:
                status, value = self.models if b"/models " in head.split(b"\r\n")[0] else (404, {})
                answer = status, "application/json", [json.dumps(value)]
            else:
                self.bodies.append(json.loads(body))
                answer = self.answer(self.bodies[-1], len(self.bodies) - 1)
            if not answer:
                self.stopping.wait(300)
            if not answer or not self.send(connection, *answer):
                return

    def send(self, connection, status, kind, parts):
        of_kind = f"Content-Type: {kind}\r\n" if kind else ""
        connection.sendall(f"HTTP/1.1 {status} x\r\nTransfer-Encoding: chunked\r\n{of_kind}\r\n".encode())
        for one in parts:
            if one is CUT or one is OPEN:
                return one is OPEN and self.stopping.wait(300) and False
            data = (one if isinstance(one, str) else f"data: {json.dumps(one)}\n\n").encode()
            connection.sendall(b"%x\r\n%s\r\n" % (len(data), data))
        connection.sendall(b"0\r\n\r\n")
        return True


def wanted_call(body):
    name, arguments = FINISH if "created a.txt" in json.dumps(body["messages"]) else WRITE
    return name, json.dumps(arguments)


def events(parts):
    return 200, "text/event-stream", parts


def refusal(status, value):
    return status, "application/json", [json.dumps(value)]


def replies(form, kind="text/event-stream"):
    return lambda body, _: (200, kind, form(*wanted_call(body)))


def first(*answers):
    """These answers, then good ones."""
    return lambda body, number: answers[number] if number < len(answers) else events(good(*wanted_call(body)))


def refuses(test, status, value):
    """A server that refuses each request for which the test holds."""
    return lambda body, _: refusal(status, value) if test(body) else events(good(*wanted_call(body)))


def parameters_of(body, name):
    functions = [tool["function"] for tool in body.get("tools", [])]
    return next((one["parameters"]["properties"] for one in functions if one["name"] == name), None)


def is_empty(message):
    """Or of blanks only, which Bedrock refuses beside calls too."""
    content = message["content"]
    return message["role"] == "assistant" and not content.strip() and (content or "tool_calls" not in message)


def tokens_of(body):
    return len(json.dumps(body["messages"])) // 4


class ServersCase(AgentCase):
    def serve(self, answer, **more):
        return self.closing(Server(answer, **more))

    def ask(self, server, env=None, **fields):
        (self.workspace / "a.txt").unlink(missing_ok=True)
        return self.run_job(self.agent_job(**fields), env={"OPENAI_BASE_URL": server.url + "/v1", **(env or {})})

    def assert_written(self, server, requests=2, **fields):
        """The job went well, with so many requests, each with tools."""
        outcome = self.ask(server, **fields)
        self.assertEqual((outcome.exit, self.text("a.txt") if outcome.exit == 0 else None), (0, "hello\n"),
            outcome.result)
        self.assertEqual((len(server.bodies), all("tools" in body for body in server.bodies)), (requests, True))
        return outcome


def as_so_far(name, text):
    so_far = [part(None, text[:end]) for end in range(7, len(text) + 7, 7)]
    return [part(name, "", id="c1"), *so_far, chunk({}, "tool_calls")]


def as_function_call(name, text):
    pieces = [{"name": name, "arguments": ""}, {"arguments": text}]
    return [*[chunk({"function_call": piece}) for piece in pieces], chunk({}, "function_call")]


def as_single_lines(name, text):
    return ["".join(f"data: {json.dumps(one)}\n" for one in good(name, text)[:-1]) + "data: [DONE]\n"]


def as_text_and_line_ends(name, text):
    call = f'<tool_call>{{"name": "{name}", "arguments": {text}}}</tool_call>'
    return [*said(call)[:1], *[chunk({"content": "\n"})] * 200, OPEN]


def behind(parts, form=good):
    """The reply of a form, with these parts before it."""
    return lambda name, text: [*parts, *form(name, text)]


def refuses_empty(body, number):
    if any(map(is_empty, body["messages"])):
        return refusal(400, error("message must not be empty"))
    return events(said("") if number == 0 else [chunk({"content": "\n\n"}), *good(*wanted_call(body))])


def refuses_thinking(body, _):
    if any("reasoning_content" in message for message in body["messages"]):
        return refusal(400, error("reasoning_content is not supported in input messages"))
    return events([chunk({"reasoning_content": "hm"}), *good(*wanted_call(body))])


def counts_the_reply(body, _):
    size = tokens_of(body) + body["max_tokens"]
    refused = refusal(429, error(f"Too large for the tokens per minute: limit 14000, requested {size}"))
    return refused if size > 14000 else events(good(*wanted_call(body)))


def refuses_all(delta, words):
    """Every request but the first, whose reply has this too."""
    refused = refusal(400, error(words))
    return lambda body, number: refused if number else events([chunk(delta), *good(*wanted_call(body))])


def no_stream(body, _):
    refused = refusal(400, error("your account may not stream this model", param="stream"))
    return refused if {"stream", "stream_options"} & set(body) else refusal(200, whole(*wanted_call(body)))


def row(answer, requests=2, event=None, **more):
    """A server's habit: how it answers, the requests of the job, the event of what was changed, its list of models."""
    return answer, requests, event, more


HABITS = {
    # Forms of a call: each is carried out.
    "a name in two pieces": row(replies(lambda name, text: [
        part(name[:3], "", id="c1"), part(name[3:], ""), part(None, text), chunk({}, "stop")])),
    "all arguments so far, again and again": row(replies(as_so_far)),
    "the old function_call": row(replies(as_function_call)),
    "no reason of the end, but its mark": row(replies(lambda name, text: [*good(name, text)[:3], DONE])),
    "one line end between events": row(replies(as_single_lines)),
    "a name twice in one object": row(replies(behind(
        ['data: {"choices":[{"delta":{"reasoning_content":"hm","reasoning_content":null}}]}\n\n']))),
    "half a character": row(replies(behind(
        [f'data: {{"choices":[{{"delta":{{"content":"\\u{half}"}}}}]}}\n\n' for half in ("d83d", "de00")]))),
    "content in parts": row(replies(behind([chunk({"content": [{"type": "text", "text": "So."}]})]))),
    "one JSON text as a stream": row(replies(lambda name, text: [json.dumps(whole(name, text), indent=1)])),
    "cut behind its end": row(replies(lambda name, text: [*good(name, text)[:-1], CUT])),
    "line ends behind a call as text": row(replies(as_text_and_line_ends)),
    "open behind its end": row(replies(lambda name, text: [*good(name, text)[:-1], ": still here\n\n", OPEN])),
    "text in one choice, its call in another": row(replies(lambda name, text: [
        {"choices": [one["choices"][0] for one in (chunk({"content": "So."}), part(name, text, id="c1"))]},
        chunk({}, "stop"), DONE])),
    "201": row(lambda body, _: (201, "text/event-stream", good(*wanted_call(body)))),
    # The first line says what an answer is.
    **{f"events as '{kind}'": row(replies(good, kind)) for kind in ("text/plain", "application/json", "")},
    # Replies that did not end well: nothing of them is done, and they are asked for again.
    "an end that says error": row(first(events([*good(*BAD)[:3], chunk({}, "error"), DONE])), 3),
    "an error in the choice": row(first(events([{"choices": [
        {"delta": {}, "error": {"code": 502, "message": "away"}, "finish_reason": "error"}]}])), 3),
    "cut in its arguments": row(first(events([*good(*BAD)[:2], CUT])), 3),
    "no choices": row(first(refusal(200, {"choices": []})), 3),
    "an error in the stream": row(first(events(
        [*good(*BAD)[:2], {"error": {"code": 503, "message": "overloaded"}}])), 3),
    "400 once, unexplained": row(first((400, "text/plain", ["Bad Request"])), 3),
    "words in the stream": row(first(events(["data: proxy.APIConnectionError: reset by peer\n\n"])), 3),
    "an error of the server's own reader": row(first(events(
        [chunk({"content": "So."}), error("Invalid diff: fewer tool calls!", code=500)])), 3),
    "500 of what stands behind a proxy": row(first(
        refusal(500, {"error": "unmarshal: invalid character 'I' at the start"})), 3),
    "an end for its length before it begins": row(first(*[events([chunk({"content": ""}, "length"), DONE])] * 2), 4),
    # What is refused: it is left out, and once is enough.
    "a field": row(refuses(lambda body: "stream_options" in body, 400,
        error("Unrecognized request argument supplied: stream_options")), 3, "model.adapted"),
    "a number": row(refuses(lambda body: body["max_tokens"] > 8192, 400,
        error("the valid range of max_tokens is [1, 8192]")), 3, "model.adapted"),
    "a bound by that name": row(refuses(lambda body: "max_tokens" in body or "max_completion_tokens" not in body, 400,
        error("Unsupported parameter: max_tokens")), 3, "model.adapted"),
    "a stream": row(no_stream, 3, "model.adapted"),
    "prompt and reply that are too long for a minute": row(counts_the_reply, 3, "model.context_cut"),
    "an empty content beside calls": row(refuses(
        lambda body: any(message.get("content") == "" for message in body["messages"]), 400,
        error("a content block must be non-empty")), 3, "model.adapted"),
    "a field, in the words of a router's server": row(refuses(lambda body: "stream_options" in body, 400,
        error("Provider returned error", metadata={"raw": json.dumps(error("stream_options: not permitted"))})),
        3, "model.adapted"),
    "the system role": row(refuses(lambda body: body["messages"][0]["role"] == "system", 400,
        {"object": "error", "message": "System role not supported"}), 3, "model.adapted"),
    "one tool": row(refuses(lambda body: parameters_of(body, "search_files"), 400,
        error("Invalid schema for function 'search_files': ...", code="invalid_function_parameters")),
        3, "model.adapted"),
    "prompt and reply that are too long for vLLM": row(refuses(
        lambda body: tokens_of(body) + body["max_tokens"] > 15000, 400,
        error("'max_tokens' is too large: 16384. This model's maximum context length is 15000 tokens and your "
              "request has 4000 input tokens (16384 > 15000 - 4000).")), 3, "model.context_cut"),
    "an empty reply in the history": row(refuses_empty, 3),
    "thinking in the history": row(refuses_thinking, 3),
    # Whatever the list of models says, the chat works.
    "a list without an object": row(replies(good), models=(200, [{"id": "m"}])),
    "names with their folder": row(replies(good), models=(200, {"data": [{"id": "models/m"}]})),
    "a list that wants a key": row(replies(good), models=(401, {})),
    "a list that is forbidden": row(replies(good), models=(403, error("Missing scopes"))),
    "a list that fails": row(replies(good), models=(500, {"error": "internal"})),
    "no list": row(replies(good), models=(200, {"object": "list"})),
}


class Habits(ServersCase):
    def test_the_job_goes_well_with_each(self):
        for name, (answer, requests, event, more) in HABITS.items():
            with self.subTest(name):
                outcome = self.assert_written(self.serve(answer, **more), requests)
                self.assertTrue(event is None or outcome.events(event))
                self.assertFalse((self.workspace / "bad.txt").exists())

    def test_two_calls_of_one_index(self):
        both = [part("write_file", json.dumps({"path": path, "content": "hello\n"}), id="")
                for path in ("a.txt", "b.txt")]
        self.assert_written(self.serve(first(events([*both, chunk({}, "stop")]))))
        self.assertEqual(self.text("b.txt"), "hello\n")

    def test_what_no_other_try_mends_ends_the_job(self):
        # The last two say the same of the thinking, whether it is sent or not.
        details = [{"type": "reasoning.encrypted", "data": "EoQC"}]
        for name, answer, words, requests in (
                ("402 in the stream", lambda *_: events([error("no credits", code=402)]), "no credits", 1),
                ("a page", lambda *_: (200, "text/html", ["<html>Sign in</html>"]), "an HTML page", 1),
                ("parts of the thinking", refuses_all({"reasoning_details": details}, "reasoning_details!"), "!", 5),
                ("thinking", refuses_all({"reasoning_content": "hm"}, "reasoning_content must be back"), "back", 7)):
            with self.subTest(name):
                server = self.serve(answer)
                outcome = self.ask(server, max_runtime_seconds=30)
                self.assertEqual((outcome.code, len(server.bodies)), ("inference_unavailable", requests))
                self.assertIn(words, outcome.message)


class Refusals(ServersCase):
    def test_a_server_that_takes_fewer_tools(self):
        words = "Invalid 'tools': array too long. Expected an array with maximum length 9, but got one with length %d."

        def answer(body, _):
            count = len(body["tools"])
            return refusal(400, error(words % count)) if count > 9 else events(good(*wanted_call(body)))
        gateway = self.closing(mcp.Server(tools={f"tool{number}": ({}, None) for number in range(40)}))
        server = self.serve(answer)
        outcome = self.assert_written(server, 3, env={"SBA_MCP_GATEWAY_URL": gateway.url})
        names = [[tool["function"]["name"] for tool in body["tools"]] for body in server.bodies]
        self.assertEqual(names[1:], [[*names[0][:8], "finish"]] * 2)
        adapted, = outcome.events("model.adapted")
        self.assertEqual((adapted["change"], adapted["what"]), ("fewer_tools", ", ".join(names[0][8:-1])))

    def test_tools_are_text_for_good_only_where_that_helps_twice(self):
        # Of a refusal that says nothing nobody knows what it was for: the next request has its tools again.
        def as_text(name, text):
            return said(json.dumps({"thought": "", "tool": name, "arguments": json.loads(text)}))
        for most, with_tools in ((2, [True, True, False, True, True]), (99, [True, True, False, True, False, False])):
            def answer(body, number, most=most):
                if "tools" in body and number < most:
                    return refusal(400, error("Bad Request"))
                call = wanted_call(body) if len(body["messages"]) > 2 else ("list_tree", "{}")
                return events((good if "tools" in body else as_text)(*call))
            with self.subTest(most):
                server = self.serve(answer)
                self.assertEqual(self.ask(server).exit, 0)
                self.assertEqual(["tools" in body for body in server.bodies], with_tools)

    def test_tools_come_back_where_text_is_refused_in_the_same_words(self):
        # The server was away for a moment, whatever it said of tools.
        away = refusal(500, error("this server does not support tools"))
        server = self.serve(lambda body, number: away if number < 2 else events(good(*wanted_call(body))))
        self.assertEqual(self.ask(server).exit, 0)
        self.assertEqual(["tools" in body for body in server.bodies], [True, False, True, True])

    def test_a_conversation_that_is_too_long_in_any_words(self):
        def choose(body, number):
            command = f"yes 'the quick brown fox' | head -c 9000; echo {number}"
            return ("run_command", json.dumps({"command": command})) if number < 6 else wanted_call(body)
        for answer in (refusal(400, error("Input is too long for requested model.")), refusal(413, {}),
                       refusal(400, error("prompt is too long: 9000 tokens > 7000 maximum")),
                       events([error("Your input exceeds the context window", code=400)])):
            with self.subTest(answer):
                server = self.serve(lambda body, number, answer=answer: answer if tokens_of(body) > 6500
                    else events(good(*choose(body, number))))
                outcome = self.ask(server)
                with_tools = all("tools" in body for body in server.bodies)
                self.assertEqual((outcome.exit, with_tools), (0, True), outcome.result)
                self.assertTrue(outcome.events("model.context_cut"))

    def test_what_came_with_a_reply_goes_back(self):
        beside = {"extra_content": {"google": {"thought_signature": "EoQC"}}}
        details = [{"type": "reasoning.encrypted", "data": "EoQC", "index": 0}]
        server = self.serve(replies(lambda name, text: [
            chunk({"reasoning_content": "hm", "reasoning_details": details}), part(name, text, id="c1", **beside),
            chunk({}, "stop")]))
        self.assert_written(server)
        sent = server.bodies[1]["messages"][2]
        self.assertEqual([sent["reasoning_content"], sent["reasoning_details"], sent["tool_calls"][0]["extra_content"]],
            ["hm", details, beside["extra_content"]])


class Patience(ServersCase):
    def test_a_server_that_listens_late(self):
        server = self.serve(replies(good), begin=False)
        log = self.root / "log"
        with log.open("wb") as stderr:
            process = self.start(self.agent_job(), env={"OPENAI_BASE_URL": server.url + "/v1"}, stderr=stderr)
            sba.wait_for(lambda: b"model.retry" in log.read_bytes(), "a try that found nobody")
            server.start()
            process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, log.read_text())

    def test_an_endpoint_that_is_gone_until_the_deadline(self):
        for name, answer in (("busy", refusal(503, error("no healthy upstream"))), ("silent", None)):
            with self.subTest(name):
                begun = time.monotonic()
                server = self.serve(lambda _, number, answer=answer: answer if number
                    else events(good("list_tree", "{}")))
                outcome = self.ask(server, max_runtime_seconds=4)
                self.assertEqual((outcome.exit, outcome.code, outcome.status), (75, "inference_unavailable", "failure"))
                self.assertLess(time.monotonic() - begun, 20)


sba.main(__name__)
