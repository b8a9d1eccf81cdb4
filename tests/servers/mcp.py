# SPDX-License-Identifier: Apache-2.0
"""An MCP server over Streamable HTTP that does what a test tells it, well or badly; and the plain POST form.

Server(era) speaks "legacy" (initialize, sessions) or "modern" (2026-07-28). Every request is kept in .requests. What a
tool does is a function of the exchange; what goes wrong before any of that is hook(exchange), which returns False where
it leaves the request to the server.
"""
import base64
import http.server
import json
import socket
import threading

MODERN = "2026-07-28"
KEY = "io.modelcontextprotocol/"


class Exchange(http.server.BaseHTTPRequestHandler):
    """One request: .message is the JSON-RPC message; answers are whole() or events()."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    message = None

    def log_message(self, *_):
        pass

    @property
    def method(self):
        return (self.message or {}).get("method")

    def read(self):
        self.path = self.requestline.split()[1]  # http.server makes one slash of several
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.message = json.loads(body) if body else None
        self.server.owner.note(self)

    def whole(self, value, status=200, kind="application/json", **headers):
        body = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)

    def begin_events(self):
        """A stream whose end is the connection's."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, data, id=None, retry=None, end="\n"):
        lines = [f"id: {id}"] if id is not None else []
        lines += [f"retry: {retry}"] if retry is not None else []
        text = data if isinstance(data, str) else json.dumps(data)
        lines += [f"data: {line}" for line in text.split("\n")]
        self.wfile.write((end.join(lines) + end * 2).encode())
        self.wfile.flush()

    def reply(self, result, **headers):
        self.whole(self.result(result), **headers)

    def result(self, result):
        return {"jsonrpc": "2.0", "id": self.message["id"], "result": result}

    def refuse(self, code, message, status=400, data=None):
        error = {"code": code, "message": message, **({"data": data} if data is not None else {})}
        self.whole({"jsonrpc": "2.0", "id": (self.message or {}).get("id"), "error": error}, status)

    def do_POST(self):
        self.read()
        owner = self.server.owner
        if not owner.hook or owner.hook(self) is False:
            owner.post(self)

    def do_GET(self):
        self.read()
        owner = self.server.owner
        owner.get(self) if owner.get else self.whole(None, owner.status_of_get(self.path))

    def do_DELETE(self):
        self.read()
        self.whole(None, 200)


class SocketExchange(Exchange):
    disable_nagle_algorithm = False


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def silence(exchange):
    exchange.begin_events()
    exchange.rfile.read(1)


def only(method, answer):
    return lambda exchange: exchange.method == method and answer(exchange)


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def process_request(self, request, client_address):
        self.owner.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, *_):
        """A client that goes away early is part of the tests."""


class SocketListener(Listener):
    address_family = socket.AF_UNIX

    def server_bind(self):
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", 0

    def get_request(self):
        return self.socket.accept()[0], ("socket", 0)


class Server:
    PATH = "/mcp"

    @staticmethod
    def status_of_get(_):
        return 405

    def __init__(self, era="legacy", version="2025-11-25", tools=None, session="s-1", hook=None, get=None,
                 capabilities=None, socket=None, instructions=None):
        self.era, self.version, self.session, self.hook, self.get = era, version, session, hook, get
        self.capabilities = {"tools": {}} if capabilities is None else capabilities
        self.described = {"capabilities": self.capabilities, **({"instructions": instructions} if instructions else {})}
        self.tools = tools or {}  # name: (tool's fields, function of the exchange)
        self.requests, self.connections, self.arrived = [], 0, threading.Condition()
        self.listener = SocketListener(socket, SocketExchange) if socket else Listener(("127.0.0.1", 0), Exchange)
        self.listener.owner = self
        self.origin = f"http://127.0.0.1:{self.listener.server_port}"
        self.url = self.origin + self.PATH
        threading.Thread(target=self.listener.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.listener.shutdown()
        self.listener.server_close()

    def note(self, exchange):
        with self.arrived:
            self.requests.append((exchange.command, exchange.path, dict(exchange.headers), exchange.message))
            self.arrived.notify_all()

    def wait_for(self, wanted, seconds=20):
        """Waits until a request came for which wanted(message) holds; returns whether one did."""
        with self.arrived:
            return self.arrived.wait_for(lambda: any(m and wanted(m) for _, _, _, m in self.requests), seconds)

    def messages(self, method):
        return [message for _, _, _, message in self.requests if message and message.get("method") == method]

    def headers(self, method):
        return [headers for _, _, headers, message in self.requests if message and message.get("method") == method]

    def list(self, exchange):
        exchange.reply({"tools": [{"name": name, "inputSchema": {"type": "object"}, **fields}
                                  for name, (fields, _) in self.tools.items()]})

    def call(self, exchange):
        name = exchange.message["params"]["name"]
        if name not in self.tools:
            return exchange.refuse(-32602, f"Unknown tool: {name}", 200)
        result = self.tools[name][1](exchange)
        if result is not None:
            exchange.reply(result)

    def post(self, exchange):
        method = exchange.method
        if "id" not in exchange.message or not method:
            return exchange.whole(None, 202)
        greet = self.legacy if self.era == "legacy" else self.modern
        if not greet(exchange, method):
            known = {"tools/list": self.list, "tools/call": self.call}
            known.get(method, lambda e: e.refuse(-32601, "Method not found", 404))(exchange)

    def legacy(self, exchange, method):
        if method == "initialize":
            session = {"Mcp_Session_Id": self.session} if self.session else {}
            exchange.reply({"protocolVersion": self.version, **self.described,
                            "serverInfo": {"name": "scripted", "version": "1"}}, **session)
        elif self.session and exchange.headers.get("Mcp-Session-Id") is None:
            exchange.refuse(-32000, "Bad Request: No valid session ID provided")
        elif self.session and exchange.headers["Mcp-Session-Id"] != self.session:
            exchange.refuse(-32001, "Session not found", 404)
        else:
            return False
        return True

    def modern(self, exchange, method):
        meta = exchange.message.get("params", {}).get("_meta", {})
        if exchange.headers.get("MCP-Protocol-Version") != MODERN or meta.get(KEY + "protocolVersion") != MODERN:
            exchange.refuse(-32022, "Unsupported protocol version", data={"supported": [MODERN]})
        elif exchange.headers.get("Mcp-Method") != method:
            exchange.refuse(-32020, "Mcp-Method does not match")
        elif method == "server/discover":
            exchange.reply({"resultType": "complete", "supportedVersions": [MODERN], **self.described})
        else:
            return False
        return True


# What the plain form's catalogue has for a job without the outside.
WORKER_TOOLS = ["artifact.put", "artifact.get", "artifact.list", "skills.list", "skills.get", "preference.get",
                "preference.list", "preference.effective", "help.list", "help.get"]


class PlainForm(Server):
    """POST /v1/mcp/tools/call with {"tool_name", "arguments"}; 404 with a text for everything else."""
    PATH = ""

    @staticmethod
    def status_of_get(path):
        return 405 if path == "/v1/mcp/tools/call" else 404

    def post(self, exchange):
        if exchange.path != "/v1/mcp/tools/call":
            return exchange.whole(b"404 page not found\n", 404, "text/plain")
        name = exchange.message.get("tool_name")
        if not name:
            return exchange.whole({"error": "tool_name is required"}, 400)
        if name not in self.tools:
            return exchange.whole({"error": "not implemented: " + name}, 501)
        result = self.tools[name][1](exchange)
        if result is not None:
            exchange.whole(result)


class NodeProxy(PlainForm):
    """A node's proxy in front of a gateway of the plain form: calls and answers in envelopes. refusal(exchange) is what
    the node itself answers. Requests are kept twice: as they came, and out of their envelope."""
    PATH = "/v1/worker/internal/orchestrator/mcp:call"
    refusal = None

    def post(self, exchange):
        if exchange.path.partition("?")[0] != self.PATH:
            return exchange.whole(b"404 page not found\n", 404, "text/plain")
        if self.refusal:
            return self.refusal(exchange)
        wrapped, send = exchange.message, exchange.whole

        def whole(value, status=200, kind="application/json", **_):
            body = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
            send({"version": 1, "status": status, "headers": {"Content-Type": [kind]},
                  "body_b64": base64.b64encode(body).decode()})
        exchange.whole = whole
        exchange.path, exchange.message = wrapped["path"], json.loads(base64.b64decode(wrapped["body_b64"],
                                                                                       validate=True))
        self.note(exchange)
        try:
            return super().post(exchange)
        finally:
            del exchange.whole  # the next request may come on the same connection
