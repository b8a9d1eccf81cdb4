# SPDX-License-Identifier: Apache-2.0
"""A scripted model server that speaks Ollama's API and the OpenAI-compatible one, with every fault a client may meet.

    with model.Server({"models": {"m": {}}, "replies": [{"content": "hi"}]}) as server: ... server.url, server.requests

The script (all but models and replies may be left out):

    {"models": {"NAME": {"capabilities": ["completion", "tools"], or null for an old server that does not say
        "tools": true, # whether a request with tools is taken; default: as the capabilities say
        "context_length": 32768, # trained; null: not said
        "num_ctx": 8192, # of the Modelfile
        "counts": true, # it counts tokens as tokens.py does, and refuses a prompt that is longer than its window; the
                        # OpenAI-compatible API, as vLLM, also one that leaves no room for max_tokens
        "template": 0, # tokens that its template adds
        "drops_tools": true, # its template has no place for tools: they are left out, as llama.cpp's server does
        "refuses_tools": [500, "words"], # what a request with tools is answered
        "refuses_grammar": true, # a schema with bounds is refused, as older servers of llama.cpp do
        "props": {...}, # what llama.cpp's /props says; the model is then its
        "alternates": false}}, # its template takes roles in any order; default: as Mistral's, see out_of_order
     "replies": [REPLY, ...], # one a chat request, in order; after the last: status 403, which ends a job
     "formats": ["ollama", "openai"], # which paths exist
     "probe_fault": FAULT} # of every request that is no chat

    REPLY = {"content", "thinking", "tool_calls": [{"name", "arguments", "id"?}], "done_reason", "prompt_tokens",
             "completion_tokens", "piece": characters a streamed piece (default 8), "fault": FAULT,
             "model": that answers, default: the one asked for}
    FAULT = "NAME" or {"name": "NAME", ...}, see faults.py beside this file.

Where prompt_tokens is not given, it is a quarter of the request's bytes. Every request is kept in server.requests,
{"at", "method", "path", "headers", "body", "size"}; body is decoded, at is the perf_counter() when it was whole.
"""
import itertools
import json
import threading
import time

from servers import faults, listener, tokens

CREATED = "2026-01-31T09:05:00.123Z"


def calls(*list_of_calls):
    return {"content": "", "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in list_of_calls]}


def call(name, **arguments):
    return calls((name, arguments))


def ending(answer="ok"):
    """A reply that does something and then ends the job: one of which nothing was done fails."""
    return calls(("list_tree", {}), ("finish", {"answer": answer}))


class Answer:
    """Writes one HTTP answer, whole or as chunks. Faults replace or bend its parts."""

    def __init__(self, connection, fault):
        self.connection, self.fault, self.keep = connection, fault, True

    def raw(self, data):
        if self.fault.name == "byte_by_byte":
            for index in range(len(data)):
                self.connection.sendall(data[index:index + 1])
        else:
            self.connection.sendall(data)

    def head(self, status, kind, *more):
        self.raw("\r\n".join([f"HTTP/1.1 {status} {faults.REASONS.get(status, 'Unknown')}", f"Content-Type: {kind}",
                              *more, "", ""]).encode())

    def whole(self, status, body, kind="application/json; charset=utf-8", *more):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.head(status, kind, f"Content-Length: {len(data)}", *more)
        self.raw(data)

    def begin(self, kind):
        self.head(200, kind, "Transfer-Encoding: chunked")

    def chunk(self, data):
        self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self):
        self.raw(b"0\r\n\r\n")


def pieces(text, size):
    return [text[i:i + size] for i in range(0, len(text), size)]


class Writer:
    streams_by_default, nests_errors = False, False

    @staticmethod
    def error(_, text, **fields):
        return {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None, **fields}}

    def __init__(self, request, reply, fault):
        self.request, self.reply, self.fault, self.number = request, reply, fault, itertools.count()


class Ollama(Writer):
    """/api/chat: NDJSON, a call whole on one line, arguments an object."""
    kind, streams_by_default, nests_errors = "application/x-ndjson", True, True

    @staticmethod
    def error(_, text, **__):
        return {"error": text}

    def line(self, message, **fields):
        value = {"model": self.reply.get("model", self.request["model"]), "created_at": CREATED,
                 "message": {"role": "assistant", **message}, "done": False, **fields}
        return json.dumps(value).encode() + b"\n"

    def calls(self):
        calls = []
        for index, call in enumerate(self.reply.get("tool_calls", [])):
            arguments = call.get("arguments", {})
            if self.fault.name == "arguments_swapped":
                arguments = json.dumps(arguments)
            function = {"index": index, "name": call["name"], "arguments": arguments}
            calls.append({**({"id": call["id"]} if "id" in call else {}), "function": function})
        return calls

    def last(self, message):
        reply = self.reply
        counts = {"prompt_eval_count": reply["prompt_tokens"], "eval_count": reply["completion_tokens"]}
        return self.line(message, done=True, done_reason=reply.get("done_reason", "stop"), total_duration=1,
                         load_duration=1, prompt_eval_duration=1, eval_duration=1,
                         **{name: count for name, count in counts.items() if count})

    def lines(self):
        size, calls = self.reply.get("piece", 8), self.calls()
        for piece in pieces(self.reply.get("thinking", ""), size):
            yield self.line({"content": "", "thinking": piece})
        for piece in pieces(self.reply.get("content", ""), size):
            yield self.line({"content": piece})
        late = self.fault.name == "calls_on_done"
        for call in [] if late else calls:
            yield self.line({"content": "", "tool_calls": [call]})
        yield self.last({"content": "", **({"tool_calls": calls} if late and calls else {})})

    def error_line(self, text):
        return json.dumps({"error": text}).encode() + b"\n"

    def endless_line(self):
        return self.line({"content": f"again and again {next(self.number)} " * 2})

    def whole(self):
        reply = self.reply
        message = {"content": reply.get("content", "")}
        if reply.get("thinking"):
            message["thinking"] = reply["thinking"]
        if reply.get("tool_calls"):
            message["tool_calls"] = self.calls()
        return self.last(message).rstrip() if self.fault.name != "no_done" else self.line(message).rstrip()


class OpenAI(Writer):
    """/v1/chat/completions: server-sent events, arguments a string in fragments."""
    kind = "text/event-stream"

    def event(self, delta=None, finish=None, **fields):
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        value = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000,
                 "model": self.reply.get("model", self.request["model"]), "choices": choices, **fields}
        return b"data: " + json.dumps(value).encode() + b"\n\n"

    def arguments(self, call):
        arguments = call.get("arguments", {})
        return arguments if self.fault.name == "arguments_swapped" else json.dumps(arguments)

    def call_events(self, index, call):
        arguments = self.arguments(call)
        fragments = [arguments] if isinstance(arguments, dict) else ["", *pieces(arguments, 5)]
        head = {"index": index, "id": call.get("id", f"call_{index + 1}"), "type": "function",
                "function": {"name": call["name"], "arguments": fragments[0]}}
        yield self.event({"tool_calls": [head]})
        for fragment in fragments[1:]:
            yield self.event({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})

    def finish(self):
        return self.reply.get("done_reason", "tool_calls" if self.reply.get("tool_calls") else "stop")

    def usage(self):
        prompt, completion = self.reply["prompt_tokens"], self.reply["completion_tokens"]
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def lines(self):
        size = self.reply.get("piece", 8)
        yield self.event({"role": "assistant", "content": None})
        for piece in pieces(self.reply.get("thinking", ""), size):
            yield self.event({"reasoning_content": piece})
        for piece in pieces(self.reply.get("content", ""), size):
            yield self.event({"content": piece})
        for index, call in enumerate(self.reply.get("tool_calls", [])):
            yield from self.call_events(index, call)
        yield self.event({}, self.finish())
        if (self.request.get("stream_options") or {}).get("include_usage"):
            yield self.event(usage=self.usage())
        if self.fault.name != "no_done":
            yield b"data: [DONE]\n\n"

    def error_line(self, text):
        return b"data: " + json.dumps({"error": {"message": text, "type": "api_error", "code": 500}}).encode() + b"\n\n"

    def endless_line(self):
        return self.event({"content": f"again and again {next(self.number)} " * 2})

    def whole(self):
        reply = self.reply
        calls = [{"id": call.get("id", f"call_{index + 1}"), "type": "function",
                  "function": {"name": call["name"], "arguments": self.arguments(call)}}
                 for index, call in enumerate(reply.get("tool_calls", []))]
        message = {"role": "assistant", "content": reply.get("content") or None, "refusal": None}
        if calls:
            message["tool_calls"] = calls
        return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "created": 1790000000,
                           "model": self.request["model"], "usage": self.usage(),
                           "choices": [{"index": 0, "finish_reason": self.finish(), "message": message}]}).encode()


def out_of_order(messages):
    """Why Mistral's template refuses these messages. Calls and results aside, user and assistant take turns."""
    if not messages:
        return None
    turns = messages[1:] if messages[0]["role"] == "system" else messages
    roles = [message["role"] for message in turns if message["role"] != "tool" and not message.get("tool_calls")]
    if any(role != ("user", "assistant")[index % 2] for index, role in enumerate(roles)):
        return "Conversation roles must alternate user/assistant/user/assistant/..."
    if messages[-1]["role"] not in ("user", "tool"):
        return f"Expected last role User or Tool for serving but got {messages[-1]['role']}"
    replies = [message for message in messages if message["role"] == "assistant"]
    if not all(message.get("content") or message.get("tool_calls") for message in replies):
        return "Assistant message must have either content or tool_calls, but not both."
    return None


class Server(listener.Listener):
    chat_paths = {"/api/chat": ("ollama", Ollama), "/v1/chat/completions": ("openai", OpenAI)}

    def __init__(self, script, listen="127.0.0.1:0"):
        self.models, self.replies = script["models"], list(script["replies"])
        self.formats = script.get("formats", ["ollama", "openai"])
        self.probe_fault = faults.Fault(script.get("probe_fault"))
        self.requests, self.lock = [], threading.Lock()
        self.refused = 0  # prompts that were longer than the window
        host, _, port = listen.rpartition(":")
        super().__init__(listen.removeprefix("unix:") if listen.startswith("unix:") else (host, int(port)))

    def chats(self):
        return [request["body"] for request in self.requests if "/chat" in request["path"]]

    def serve(self, connection):
        while (request := self.read(connection)) and self.answer(connection, request):
            pass

    def read(self, connection):
        request = listener.read_request(connection)
        if not request:
            return None
        head, body = request
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        method, path, _ = first.split(" ")
        request = {"at": time.perf_counter(), "method": method, "path": path, "headers": headers,
                   "body": json.loads(body) if body else None, "size": len(body)}
        self.requests.append(request)
        return request

    def answer(self, connection, request):
        """Answers a request; whether the connection goes on."""
        path = request["path"].partition("?")[0]
        name, form = self.chat_paths.get(path, (None, Ollama))
        if name in self.formats and request["method"] == "POST":
            return self.chat(connection, request, form)
        answer = Answer(connection, self.probe_fault)
        if faults.instead(self.probe_fault, answer, self.stopping, form):
            return answer.keep
        probe = self.probes().get(path)
        if not probe:
            answer.whole(404, b"404 page not found", "text/plain")
        else:
            answer.whole(*probe(request["body"]))
        return answer.keep

    def probes(self):
        ollama = {"/": lambda _: (200, b"Ollama is running", "text/plain"),
                  "/api/version": lambda _: (200, {"version": "0.32.9"}),
                  "/api/tags": self.tags, "/api/show": self.show}
        openai = {"/v1/models": self.model_list}
        for model in self.models.values():
            if "props" in model:
                openai["/props"] = lambda _, model=model: (200, model["props"])
        return {**(ollama if "ollama" in self.formats else {}), **(openai if "openai" in self.formats else {})}

    def model(self, body):
        name = body.get("model", "")
        return self.models.get(name, self.models.get(name + ":latest"))

    def tags(self, _):
        return 200, {"models": [{"name": name, "model": name, "modified_at": CREATED, "size": 1, "digest": "d" * 64,
                                 "details": {"family": "test"}} for name in self.models]}

    def show(self, body):
        model = self.model(body)
        if model is None:
            return 404, {"error": f"model '{body.get('model')}' not found"}
        info = {"general.architecture": "test"}
        if model.get("context_length", 32768):
            info["test.context_length"] = model.get("context_length", 32768)
        shown = {"details": {"family": "test"}, "model_info": info, "template": "", "modified_at": CREATED}
        if "num_ctx" in model:
            shown["parameters"] = f"{'stop':31}\"<|end|>\"\n{'num_ctx':31}{model['num_ctx']}"
        capabilities = model.get("capabilities", ["completion", "tools"])
        return 200, {**shown, **({} if capabilities is None else {"capabilities": capabilities})}

    def model_list(self, _):
        data = [{"id": name, "object": "model", "created": 1, "owned_by": "llamacpp" if "props" in model else "test",
                 **({"max_model_len": model["max_model_len"]} if "max_model_len" in model else {})}
                for name, model in self.models.items()]
        return 200, {"object": "list", "data": data}

    def window(self, body):
        """The window of a model that counts, and the tokens of the prompt."""
        model = self.model(body)
        if not model.get("counts"):
            return None, None
        window = (body.get("options") or {}).get("num_ctx") or model["max_model_len"]
        read = {**body, "tools": None} if model.get("drops_tools") else body
        return window, tokens.of_request(read) + model.get("template", 0)

    def refusal(self, body):
        """What a real server refuses before it asks a model."""
        name = body.get("model", "")
        model = self.model(body)
        if model is None:
            return 404, f"model '{name}' not found"
        capabilities = model.get("capabilities", ["completion", "tools"])
        if body.get("tools") and not model.get("tools", capabilities is None or "tools" in capabilities):
            return 400, f"registry.ollama.ai/library/{name} does not support tools"
        if body.get("tools") and "refuses_tools" in model:
            return model["refuses_tools"]
        if model.get("refuses_grammar") and "maxLength" in json.dumps(body):
            return 400, ("Failed to parse grammar: number of repetitions exceeds sane defaults, "
                         "please reduce the number of repetitions")
        why = model.get("alternates", True) and out_of_order(body["messages"])
        return (500, why) if why else None

    def too_long(self, body, form):
        """What a server that counts answers to a request that does not fit."""
        window, count = self.window(body)
        longest = body.get("max_tokens") or body.get("max_completion_tokens") or 0 if form is OpenAI else 0
        if not count or count + longest <= window:
            return None, count
        self.refused += 1
        if count > window:
            fault = faults.Fault({"window": window, "tokens": count})
            return lambda answer: faults.context_exceeded(fault, answer, form), count
        words = (f"This model's maximum context length is {window} tokens. However, you requested {longest} output "
                 f"tokens and your prompt contains at least {count} input tokens.")
        return lambda answer: faults.refuse(answer, form, 400, words), count

    def next_reply(self, _body):
        """For a server of many jobs at once, which finds a reply by the request, to replace."""
        with self.lock:
            return self.replies.pop(0) if self.replies else {"fault": "script_ended"}

    def chat(self, connection, request, form):
        body, refused = request["body"], self.refusal(request["body"])
        if refused:
            faults.refuse(Answer(connection, faults.Fault(None)), form, *refused)
            return True
        refuse, count = self.too_long(body, form)
        if refuse:
            refuse(Answer(connection, faults.Fault(None)))
            return True
        reply = dict(self.next_reply(body))
        reply.setdefault("prompt_tokens", count or request["size"] // 4)
        reply.setdefault("completion_tokens", max(1, len(json.dumps(reply)) // 4))
        fault = faults.Fault(reply.get("fault"))
        answer = Answer(connection, fault)
        if faults.instead(fault, answer, self.stopping, form):
            return answer.keep
        writer = form(body, reply, fault)
        if not body.get("stream", form.streams_by_default) or fault.name == "not_streamed":
            answer.whole(200, writer.whole())
        else:
            answer.begin(form.kind)
            faults.stream(fault, answer, writer, self.stopping)
        return answer.keep
