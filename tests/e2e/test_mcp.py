# SPDX-License-Identifier: Apache-2.0
"""The MCP client and the gateway's tools, against servers of both eras that do what servers do, and worse."""
import json
import time

import sba
from gateway_case import TalkingCase, echo, tool
from servers import mcp


class Eras(TalkingCase):
    def test_each_legacy_revision(self):
        for version, named in (("2024-11-05", None), ("2025-03-26", None), ("2025-06-18", None), ("2025-11-25", {}),
                               (None, None)):  # without a revision it is the one that was offered
            server = self.echoing(version=version, capabilities=named)
            first, (said,) = self.talk(server.url, ("echo", {"a": 1}))
            self.assertEqual((first["era"], first["form"], said["answer"]["content"]), ("legacy", "mcp", '{"a": 1}'))
            self.assertEqual(server.messages("initialize")[0]["params"]["protocolVersion"], "2025-11-25")
            self.assertEqual(server.headers("tools/call")[0]["Mcp-Session-Id"], "s-1")
            self.assertEqual(server.headers("tools/call")[0]["MCP-Protocol-Version"], version or "2025-11-25")
            self.assertEqual(len(server.messages("notifications/initialized")), 1)
            self.assertEqual(server.requests[-1][0], "DELETE")

    def test_a_server_of_the_revisions_without_sessions(self):
        server = self.echoing(era="modern")
        first, (said,) = self.talk(server.url, ("echo", {"a": 1}))
        self.assertEqual((first["era"], said["answer"]["content"]), ("modern", '{"a": 1}'))
        self.assertEqual(server.messages("initialize"), [])
        self.assertNotIn("DELETE", [request[0] for request in server.requests])
        headers = server.headers("tools/call")[0]
        self.assertEqual((headers["Mcp-Method"], headers["Mcp-Name"]), ("tools/call", "echo"))
        self.assertNotIn("Mcp-Session-Id", headers)

    def test_answers_to_the_probe_that_mean_legacy(self):
        for refuse in (lambda e: e.refuse(-32601, "Method not found", 404),
                       lambda e: e.refuse(-32000, "Bad Request", 400), lambda e: e.whole(None, 405),
                       lambda e: e.whole(b"<html>", 404, "text/html"), lambda e: e.reply({}),
                       lambda e: e.refuse(-32022, "no", data={"supported": ["2025-06-18"]}),
                       lambda e: e.reply({"supportedVersions": ["2025-06-18"]}),
                       lambda e: e.whole({"error": "not found"}, 404),
                       lambda e: e.whole({"error": "Invalid method: server/discover"}, 400),  # IBM ContextForge 1.0
                       lambda e: e.begin_events()):  # Python SDK 1.8.1: a stream that ends without an answer
            first, _ = self.talk(self.echoing(hook=mcp.only("server/discover", refuse)).url)
            self.assertEqual(first.get("era"), "legacy")

    def test_the_session_of_the_probe_is_ended(self):
        # FastMCP 2 and the Go SDK open a session before they refuse.
        def refuse(exchange):
            answer = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}
            exchange.whole(answer, 200, Mcp_Session_Id="probe-1")
        server = self.echoing(hook=mcp.only("server/discover", refuse))
        self.talk(server.url)
        ended = [(place, headers["Mcp-Session-Id"])
                 for place, (command, _, headers, _) in enumerate(server.requests) if command == "DELETE"]
        self.assertEqual(ended, [(1, "probe-1"), (len(server.requests) - 1, "s-1")])

    def test_answers_to_the_probe_that_are_failures(self):
        for code, refuse in (("unauthorized", lambda e: e.whole(None, 401)), ("refused", lambda e: e.whole(None, 403)),
                             ("gateway_failed", lambda e: e.whole(b"<html>", 502, "text/html")),
                             ("tool_refused", lambda e: e.refuse(-32021, "missing capability")),
                             ("unsupported_version", lambda e: e.reply({"supportedVersions": ["2031-01-01"]}))):
            server = self.server(hook=refuse)
            first, _ = self.talk(server.url)
            self.assertEqual(first["failure"]["code"], code)
            self.assertEqual(server.messages("initialize"), [])

    def test_what_is_no_mcp(self):
        for answer in (lambda e: e.whole(b"gone", 404, "text/plain"), lambda e: e.whole(b"<html>", 200, "text/html"),
                       # With jsonrpc it is never the plain form.
                       lambda e: e.whole({"jsonrpc": "2.0", "error": "no such method"}, 400)):
            first, _ = self.talk(self.server(hook=answer).url)
            self.assertEqual((first["failure"]["code"], first["failure"]["transient"]), ("not_mcp", False))

    def test_a_server_without_tools(self):
        for named, times in (({"prompts": {}}, 0), ({}, 1)):
            server = self.server(capabilities=named, hook=mcp.only("tools/list", lambda e: e.refuse(-32601, "what?")))
            self.assertEqual(self.talk(server.url)[0]["tools"], [])
            self.assertEqual(len(server.messages("tools/list")), times)

    def test_a_server_that_never_answers_what_it_does_not_know(self):
        # Python SDK 1.6 behind a bridge.
        mute = mcp.only("server/discover", lambda e: e.rfile.read(1))
        server = self.echoing(version="2024-11-05", hook=mute)
        first, (said,) = self.talk(server.url, ("echo", {"a": 1}), answer_timeout=1)
        self.assertEqual((first["era"], said["answer"]["content"]), ("legacy", '{"a": 1}'))


class Streams(TalkingCase):
    """The many forms of an answer, in legacy."""

    def stream(self, write, **options):
        def tool(exchange):
            exchange.begin_events()
            write(exchange)
        server = self.echoing(tool, **options)
        return server, self.call(server)

    def test_events_of_every_form(self):
        for end in ("\n", "\r\n", "\r"):
            def write(exchange, end=end):
                exchange.wfile.write(f"\ufeff: hello{end}{end}event: message{end}".encode())
                exchange.event({"method": "notifications/progress", "params": {}}, end=end)
                exchange.event(json.dumps(exchange.result(mcp.text("grüße")), indent=1), end=end)
            self.assertEqual(self.stream(write)[1]["answer"]["content"], "grüße")

    def test_a_stream_that_stays_open_after_the_answer(self):
        def write(exchange):
            exchange.event(exchange.result(mcp.text("done")))
            exchange.rfile.read(1)  # until the client goes
        self.assertEqual(self.stream(write)[1]["answer"]["content"], "done")

    def test_requests_of_the_server(self):
        def write(exchange):
            exchange.event({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            ponged.append(exchange.server.owner.wait_for(lambda m: m.get("id") == "p" and m.get("result") == {}))
            exchange.event({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}})
            ponged.append(exchange.server.owner.wait_for(lambda m: m.get("error", {}).get("code") == -32601))
            exchange.event(exchange.result(mcp.text("answered")))
        ponged = []
        server, said = self.stream(write)
        self.assertEqual((ponged, said["answer"]["content"]), ([True, True], "answered"))
        self.assertEqual(len(server.messages("tools/call")), 1)

    def test_requests_on_the_standalone_stream(self):
        # The official SDKs ask there, and the call waits. What else comes there is passed over.
        def get(exchange):
            exchange.begin_events()
            exchange.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
            exchange.event({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            exchange.wfile.write(b'data: {"jsonrpc": "2.0", ')
            self.assertTrue(server.wait_for(lambda m: m.get("id") == "p" and m.get("result") == {}))
            exchange.wfile.write(b'"id": "q", "method": "elicitation/create", "params": {}}\n\n')
            exchange.rfile.read(1)
            gone.append(True)

        def tool(exchange):
            if events:
                exchange.begin_events()
            declined = server.wait_for(lambda m: m.get("id") == "q" and m.get("error", {}).get("code") == -32601, 10)
            result = mcp.text("declined" if declined else "hung")
            return exchange.event(exchange.result(result)) if events else result
        for events in (False, True):
            gone = []
            server = self.echoing(tool, get=get)
            self.assertEqual(self.call(server)["answer"]["content"], "declined")
            opened = [headers for command, _, headers, _ in server.requests if command == "GET"]
            self.assertEqual([(h["Accept"], h["Mcp-Session-Id"]) for h in opened], [("text/event-stream", "s-1")])
            sba.wait_for(lambda: gone, "the end of the standalone stream")

    def test_no_standalone_stream(self):
        # It is asked for once, before the first call; a server that is mute delays that a little.
        for get in (None, lambda e: e.whole({}), lambda e: e.whole(None, 404), lambda e: e.rfile.read(1)):
            server = self.echoing(get=get)
            _, said = self.talk(server.url, ("echo", {}), ("echo", {}))
            self.assertEqual([one["answer"]["content"] for one in said], ["{}", "{}"])
            self.assertEqual([command for command, *_ in server.requests].count("GET"), 1)

    def test_resumption(self):
        # The stream breaks behind an event, seven times, and goes on there after the server's retry.
        seen, replies = [], []

        def write(exchange):
            replies.append(exchange.result(mcp.text("resumed")))
            exchange.event("", id="e-1", retry=50)

        def get(exchange):
            if "Last-Event-ID" not in exchange.headers:  # the standalone stream
                return exchange.whole(None, 405)
            seen.append(exchange.headers["Last-Event-ID"])
            self.assertEqual(exchange.headers["Mcp-Session-Id"], "s-1")
            exchange.begin_events()
            exchange.event("" if len(seen) < 7 else replies[0], id=f"e-{len(seen) + 1}")
        server, said = self.stream(write, get=get)
        self.assertEqual((seen, said["answer"]["content"]), ([f"e-{i}" for i in range(1, 8)], "resumed"))
        self.assertEqual(len(server.messages("tools/call")), 1)

    def test_a_lost_answer_is_not_asked_for_again(self):
        for id, get in ((None, None), ("e-1", None), ("e-1", lambda e: e.whole({}, 404)),
                        ("e-1", lambda e: e.begin_events())):
            server, said = self.stream(lambda exchange, id=id: exchange.event("", id=id, retry=1), get=get)
            self.assertEqual(said["failure"]["code"], "request_lost")
            self.assertEqual(len(server.messages("tools/call")), 1)

    def test_an_error_without_an_id_or_with_another(self):
        for more in ({}, {"id": None}, {"id": "server-error"}):
            body = {"jsonrpc": "2.0", "error": {"code": -32602, "message": "a is missing", "data": ["a"]}, **more}
            failure = self.call(self.echoing(lambda e, body=body: e.whole(body)))["failure"]
            self.assertEqual(failure["code"], "tool_refused")
            self.assertIn('-32602: a is missing ["a"]', failure["message"])

    def test_events_that_are_no_messages(self):
        for noise in ("{", '"text"', "<html>"):
            _, said = self.stream(lambda exchange, noise=noise: exchange.event(noise))
            self.assertEqual(said["failure"]["code"], "bad_answer")

    def test_answers_to_others_are_passed_over(self):
        def write(exchange):
            exchange.event({"jsonrpc": "2.0", "id": 999, "result": mcp.text("not yours")})
            exchange.event({"jsonrpc": "2.0", "id": str(exchange.message["id"]), "result": mcp.text("nor this")})
            exchange.event(exchange.result(mcp.text("yours")))
        self.assertEqual(self.stream(write)[1]["answer"]["content"], "yours")


class Sessions(TalkingCase):
    def test_an_expired_session_is_opened_again(self):
        def tool(exchange):
            called.append(exchange.headers["Mcp-Session-Id"])
            return mcp.text("here")

        def hook(exchange):
            if exchange.method == "tools/call":
                server.session = "s-2"
            return False
        called = []
        server = self.echoing(tool, hook=hook)
        self.assertEqual(self.call(server)["answer"]["content"], "here")
        self.assertEqual(called, ["s-2"])
        methods = [m.get("method") for _, _, _, m in server.requests if m]
        self.assertEqual([method for method in methods if method in ("initialize", "tools/call")],
                         ["initialize", "tools/call"] * 2)
        self.assertNotIn("Mcp-Session-Id", server.headers("initialize")[1])

    def test_a_session_that_is_always_gone(self):
        gone = mcp.only("tools/call", lambda e: e.refuse(-32001, "Session not found", 404))
        server = self.echoing(hook=gone)
        self.assertEqual(self.call(server)["failure"]["code"], "session_lost")
        self.assertEqual(len(server.messages("tools/call")), 2)

    def test_a_session_name_that_no_header_may_hold(self):
        first, _ = self.talk(self.server(session="s\u00e9".encode().decode("latin-1")).url)
        self.assertEqual(first["failure"]["code"], "bad_session")


class Ends(TalkingCase):
    @staticmethod
    def silent(exchange):
        exchange.begin_events()
        exchange.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        exchange.rfile.read(1)

    def assert_given_up(self, server, said, code):
        self.assertEqual(said["failure"]["code"], code)
        server.wait_for(lambda m: m.get("method") == "notifications/cancelled")
        notes = server.messages("notifications/cancelled")
        self.assertEqual([note["params"]["requestId"] for note in notes], [server.messages("tools/call")[0]["id"]])

    def test_at_its_limits_and_the_deadline(self):
        for code, bounds in (("slow_answer", {"limits": {"whole": 1}}), ("slow_answer", {"limits": {"idle": 1}}),
                             ("timeout", {"deadline": 4})):
            server = self.echoing(self.silent)
            self.assert_given_up(server, self.call(server, **bounds), code)

    def test_modern_is_cancelled_by_closing(self):
        closed = []

        def tool(exchange):
            exchange.begin_events()
            closed.append(exchange.rfile.read(1))
        server = self.echoing(tool, era="modern")
        said = self.call(server, limits={"whole": 1})
        self.assertEqual(said["failure"]["code"], "slow_answer")
        self.assertEqual(server.messages("notifications/cancelled"), [])
        sba.wait_for(lambda: closed, "the end of the connection")
        self.assertEqual(closed, [b""])

    def test_progress(self):
        # Each progress of the call itself gives it as much time again.
        def tool(exchange):
            exchange.begin_events()
            params = {"progressToken": exchange.message["params"]["_meta"]["progressToken"], "progress": 1}
            for _ in range(10):
                exchange.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
                time.sleep(0.4)
            exchange.event(exchange.result(mcp.text("done")))
        for era in ("legacy", "modern"):
            server = self.echoing(tool, era=era)
            self.assertEqual(self.call(server, limits={"idle": 3})["answer"]["content"], "done")
            self.assertEqual(self.call(server, limits={"idle": 3, "whole": 1})["failure"]["code"], "slow_answer")


class Tokens(TalkingCase):
    def test_the_token_goes_to_its_origin_only(self):
        other = self.echoing()
        for status in (301, 302, 303, 307, 308):
            server = self.server(hook=lambda e, status=status: e.whole(None, status, Location=other.url))
            first, _ = self.talk(server.url, token="secret-1")
            self.assertEqual(first["failure"]["code"], "redirected")
            self.assertNotIn("secret-1", json.dumps(first))
            self.assertEqual(server.requests[0][2]["Authorization"], "Bearer secret-1")
        self.assertEqual(other.requests, [])

    def test_a_redirect_within_the_origin(self):
        for target in ("/mcp/", "{}/mcp/"):
            def hook(exchange, target=target):
                return exchange.path == "/mcp" and exchange.whole(None, 307, Location=target.format(server.origin))
            server = self.echoing(hook=hook)
            self.assertEqual(self.call(server, token="secret-1")["answer"]["content"], "{}")
            self.assertEqual(server.requests[-1][1], "/mcp/")
            self.assertEqual(len([r for r in server.requests if r[1] == "/mcp"]), 1)

    def test_redirects_that_are_not_followed(self):
        # To origins that look alike, to nowhere, and in a circle.
        for location in ("//other.example/mcp", "/\\other.example/mcp", "http://127.0.0.1:1/mcp",
                         "https://127.0.0.1/mcp", "http://127.0.0.1.other.example/mcp", "ftp://x/", "", "/mcp"):
            server = self.server(hook=lambda e, location=location: e.whole(None, 307, Location=location))
            self.assertEqual(self.talk(server.url, token="t")[0]["failure"]["code"], "redirected", location)

    def test_401_says_whether_a_token_was_given(self):
        server = self.server(hook=lambda e: e.whole(None, 401))
        for options, words in (({}, "no token was given (SBA_MCP_TOKEN_FILE, SBA_MCP_TOKEN)"),
                               ({"token": "t"}, "does not accept the agent's token")):
            self.assertIn(words, self.talk(server.url, **options)[0]["failure"]["message"])

    def test_a_token_that_would_add_a_header(self):
        first, _ = self.talk("http://127.0.0.1:9/", token="t\r\nX-Evil: 1")
        self.assertEqual(first["failure"]["code"], "invalid_token")
        self.assertNotIn("Evil", json.dumps(first))


class Lists(TalkingCase):
    def pages(self, pages, **options):
        def give(exchange):
            page = pages(exchange.message["params"].get("cursor"))
            if isinstance(page, int):
                return exchange.refuse(page, "Invalid cursor", 200)
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in page[0]]
            return exchange.reply({"tools": tools, **page[1]})
        server = self.server(hook=mcp.only("tools/list", give), **options)
        first, _ = self.talk(server.url)
        return server, [tool["tool"] for tool in first.get("tools", [])]

    def test_paging(self):
        pages = {None: (["a"], {"nextCursor": ""}), "": (["b"], {"nextCursor": "x"}),
                 "x": (["c"], {"nextCursor": None})}
        for era in ("legacy", "modern"):
            self.assertEqual(self.pages(pages.get, era=era)[1], ["a", "b", "c"])
            server, tools = self.pages(lambda cursor: (["a"], {"nextCursor": "again"}), era=era)
            self.assertEqual((tools, len(server.messages("tools/list"))), (["a"], 2))

    def test_an_error_that_is_nested_deeply(self):
        answer = b'{"jsonrpc":"2.0","error":{"data":%s}}' % (b"[" * 300 + b"]" * 300)
        server = self.server(hook=mcp.only("tools/list", lambda e: e.whole(answer)))
        self.assertIn("failure", self.talk(server.url)[0])

    def test_useless_tools_are_left_out(self):
        tools = {"task": ({"execution": {"taskSupport": "required"}}, None), "none": ({"inputSchema": None}, None),
                 "echo": tool()}
        first, _ = self.talk(self.server(tools=tools).url)
        self.assertEqual([tool["tool"] for tool in first["tools"]], ["echo"])
        self.assertEqual([tool["name"] for tool in first["dropped"]], ["task", "none"])

    def test_a_list_that_changes(self):
        def grow(exchange):
            server.tools["new"] = tool()
            exchange.begin_events()
            exchange.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            exchange.event(exchange.result(mcp.text("grown")))
        for era in ("legacy", "modern"):
            server = self.server(era=era, tools={"grow": ({}, grow)})
            _, said = self.talk(server.url, ("new", {}), ("grow", {}), ("new", {}), ("new", {}))
            self.assertEqual([one.get("failure", {}).get("code") for one in said], ["unknown_tool", None, None, None])
            # At first, and for each call of a tool that is not in it.
            self.assertEqual(len(server.messages("tools/list")), 3)


class Results(TalkingCase):
    def shown(self, result, **options):
        return self.call(self.echoing(lambda _: result), **options)["answer"]

    def test_blocks(self):
        answer = self.shown({"content": [
            {"type": "text", "text": "one"}, {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGVsbG8h", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a", "name": "A\x1b[1m"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "bee"}},
            {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "x/y", "blob": "aA=="}},
            {"type": "hologram"}, 7, {}, {"type": "text", "text": {"a": 1}}, {"type": "text", "words": "b"}]})
        self.assertEqual(answer["content"].split("\n"), [
            "one", "[image, image/png, 5 bytes]", "[audio, audio/wav, 6 bytes]", "[resource file:///a: A\\x1b[1m]",
            "[resource file:///b]", "bee", "[resource file:///c, x/y, 1 bytes]", "[hologram, not shown]",
            "[not a block]", "[block without a type, not shown]", '{"a":1}', '{"type":"text","words":"b"}'])
        self.assertFalse(answer["is_error"])
        self.assertEqual(len(answer["parts"]), 11)

    def test_a_call_that_was_not_carried_out(self):
        for status, headers, tries in ((429, {"Retry_After": "0"}, 3), (429, {}, 1), (503, {"Retry_After": "0"}, 1)):
            left = [True, True]

            def refuse(exchange, status=status, headers=headers, left=left):
                return bool(left) and left.pop() and exchange.whole({"error": "later"}, status, **headers)
            server = self.echoing(hook=mcp.only("tools/call", refuse))
            said = self.call(server)
            self.assertEqual(len(server.messages("tools/call")), tries, (status, headers))
            self.assertEqual("answer" in said, tries == 3, said)

    def test_errors_of_the_protocol(self):
        for status in (200, 400, 404):
            def tool(exchange, status=status):
                exchange.refuse(-32603, "it broke\nbadly", status)
            failure = self.call(self.echoing(tool, session=None))["failure"]
            self.assertEqual((failure["code"], failure["rpc"]["code"]), ("tool_refused", -32603))
            self.assertIn("it broke badly", failure["message"])


class Modern(TalkingCase):
    def test_arguments_that_are_headers_too(self):
        properties = {"region": {"type": "string", "x-mcp-header": "Region"},
                      "n": {"type": "integer", "x-mcp-header": "N"},
                      "deep": {"type": "object", "properties": {"b": {"type": "boolean", "x-mcp-header": "B"}}}}
        schema = {"type": "object", "properties": properties}
        server = self.server(era="modern", tools={"echo": ({"inputSchema": schema}, echo)})
        self.talk(server.url, ("echo", {"region": " ü", "n": 4, "deep": {"b": False}}),
                  ("echo", {"region": "", "n": None}))
        first, second = server.headers("tools/call")
        sent = [first["Mcp-Param-" + name] for name in ("Region", "N", "B")]
        self.assertEqual(sent, ["=?base64?IMO8?=", "4", "false"])
        self.assertEqual(second["Mcp-Param-Region"], "")
        self.assertNotIn("Mcp-Param-N", second)

    def test_questions_are_declined(self):
        def tool(exchange):
            params = exchange.message["params"]
            if "inputResponses" in params:
                return mcp.text(json.dumps([params["inputResponses"], params["requestState"]]))
            return {"resultType": "input_required", "requestState": "  opaque\n",
                    "inputRequests": {"k": {"method": "elicitation/create"}}}
        server = self.echoing(tool, era="modern")
        answer = json.loads(self.call(server)["answer"]["content"])
        self.assertEqual(answer, [{"k": {"action": "decline"}}, "  opaque\n"])
        ids = [m["id"] for m in server.messages("tools/call")]
        self.assertEqual(len(set(ids)), 2)


class Plain(TalkingCase):
    def form(self, **tools):
        return self.server(mcp.PlainForm, tools={name.replace("__", "."): ({}, tool) for name, tool in tools.items()})

    def test_found_out_and_used(self):
        server = self.form(skills__get=lambda e: {"name": "a skill", "got": e.message["arguments"]},
                           memory__add=lambda e: e.message["arguments"])
        for url in (server.origin, server.origin + "/", server.origin + "/v1/mcp/tools/call"):
            calls = (("skills.get", {"skill_id": "s"}), ("memory.add", {"key": "k"}))
            first, said = self.talk(url, *calls, token="secret-1")
            self.assertEqual(first["form"], "plain")
            self.assertEqual([tool["tool"] for tool in first["tools"]], mcp.WORKER_TOOLS)
            self.assertNotIn("task_id", json.dumps(first["tools"]))
            got = [json.loads(each["answer"]["content"]) for each in said]
            self.assertEqual(got[0]["got"], {"skill_id": "s", "task_id": "task-1"})
            self.assertEqual(got[1], {"key": "k", "task_id": "task-1", "job_id": "job-1"})
            self.assertEqual(server.requests[-1][2]["Authorization"], "Bearer secret-1")

    def test_finding_it_out_calls_nothing_where_a_get_tells(self):
        for status, calls in ((None, 0), (405, 1), (404, 1), (200, 1)):  # of all paths
            server = self.form(help__get=lambda e: {"got": True})
            if status:
                server.get = lambda exchange, status=status: exchange.whole(None, status)
            first, _ = self.talk(server.origin)
            self.assertEqual(first["form"], "plain")
            self.assertEqual(len([m for _, _, _, m in server.requests if m and "tool_name" in m]), calls, status)

    def test_its_answers(self):
        for value, content in ((mcp.text("as MCP has it"), "as MCP has it"), (["a"], '["a"]'), ("words", "words")):
            server = self.form(help__get=lambda e, value=value: e.whole(value))
            _, (said,) = self.talk(server.origin, ("help.get", {}))
            self.assertEqual(said["answer"]["content"], content)
        server = self.form(help__get=lambda e: e.whole(b"<html>", 200, "text/html"))
        self.assertEqual(self.talk(server.origin, ("help.get", {}))[1][0]["failure"]["code"], "bad_answer")


sba.main(__name__)
