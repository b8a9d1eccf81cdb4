# SPDX-License-Identifier: Apache-2.0
"""A scripted model for programs that are agents themselves: they ask, it tells them what to run.

    with workers.Server(["sed -i s/helo/hello/ hello.c"]) as server: ... server.url

It speaks chat completions and responses as OpenAI does and messages as Anthropic does, streaming and whole, with the
faults of faults.py. To a request that offers a tool for commands it answers with the next of the commands, by how many
results the request has, and at the end with words. One without such a tool, as for a title of the conversation, gets
words at once.
"""
import itertools
import json

from servers import model

SHELLS = ("bash", "shell", "exec_command", "shell_command")  # what agents call the tool for commands
REQUIRED = {"description": "Run it", "timeout": 60000}  # by some shells, beside the command
DONE = "The greeting is spelt right now."
PROMPT_TOKENS, COMPLETION_TOKENS = 1200, 40  # of every reply


class Events(model.Writer):
    """Server-sent events with names."""
    kind = "text/event-stream"

    @staticmethod
    def event(name, **fields):
        return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()

    def name(self):
        return self.reply.get("model", self.request["model"])

    def calls(self):
        return self.reply.get("tool_calls", [])

    def whole(self):
        return json.dumps(self.message()).encode()


class Responses(Events):
    """/v1/responses: an item for the text and for each call, each announced, filled and closed."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.order = itertools.count()

    def event(self, name, **fields):
        return super().event(name, sequence_number=next(self.order), **fields)

    def response(self, status, output=(), usage=None):
        return {"id": "resp_1", "object": "response", "created_at": 1790000000, "status": status, "model": self.name(),
                "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "output": list(output),
                "parallel_tool_calls": True, "previous_response_id": None, "store": False, "tool_choice": "auto",
                "tools": [], "usage": usage}

    def items(self, status):
        """What the reply holds; empty as long as it is in progress."""
        is_whole, items = status == "completed", []
        if self.reply.get("content"):
            text = {"type": "output_text", "text": self.reply["content"], "annotations": []}
            items.append({"type": "message", "id": "msg_1", "status": status, "role": "assistant",
                          "content": [text] if is_whole else []})
        for index, call in enumerate(self.calls()):
            items.append({"type": "function_call", "id": f"fc_{index}", "call_id": call["id"], "status": status,
                          "name": call["name"], "arguments": json.dumps(call["arguments"]) if is_whole else ""})
        return items

    def message(self):
        prompt, completion = self.reply["prompt_tokens"], self.reply["completion_tokens"]
        usage = {"input_tokens": prompt, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": completion,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": prompt + completion}
        return self.response("completed", self.items("completed"), usage)

    def text(self, place, text):
        place = {**place, "content_index": 0}
        empty, full = ({"type": "output_text", "text": words, "annotations": []} for words in ("", text))
        yield self.event("response.content_part.added", **place, part=empty)
        for piece in model.pieces(text, 8):
            yield self.event("response.output_text.delta", **place, delta=piece, logprobs=[])
        yield self.event("response.output_text.done", **place, text=text, logprobs=[])
        yield self.event("response.content_part.done", **place, part=full)

    def arguments(self, place, text):
        for piece in model.pieces(text, 8):
            yield self.event("response.function_call_arguments.delta", **place, delta=piece)
        yield self.event("response.function_call_arguments.done", **place, arguments=text)

    def lines(self):
        yield self.event("response.created", response=self.response("in_progress"))
        yield self.event("response.in_progress", response=self.response("in_progress"))
        for index, (empty, item) in enumerate(zip(self.items("in_progress"), self.items("completed"))):
            place = {"item_id": item["id"], "output_index": index}
            yield self.event("response.output_item.added", output_index=index, item=empty)
            if item["type"] == "message":
                yield from self.text(place, item["content"][0]["text"])
            else:
                yield from self.arguments(place, item["arguments"])
            yield self.event("response.output_item.done", output_index=index, item=item)
        yield self.event("response.completed", response=self.message())

    def error_line(self, text):
        failed = {**self.response("failed"), "error": {"code": "server_error", "message": text}}
        return self.event("response.failed", response=failed)

    def endless_line(self):
        return self.event("response.in_progress", response=self.response("in_progress"))


class Messages(Events):
    """/v1/messages: a block for the text and for each call."""
    TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
             429: "rate_limit_error", 500: "api_error", 503: "overloaded_error"}

    @classmethod
    def error(cls, status, text, **_):
        error = {"type": cls.TYPES.get(status, "api_error"), "message": text}
        return {"type": "error", "error": error, "request_id": "req_1"}

    def blocks(self):
        if self.reply.get("content"):
            yield {"type": "text", "text": self.reply["content"]}
        for call in self.calls():
            yield {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}

    def message(self, is_whole=True):
        usage = {"input_tokens": self.reply["prompt_tokens"], "cache_creation_input_tokens": 0,
                 "cache_read_input_tokens": 0, "output_tokens": self.reply["completion_tokens"] if is_whole else 1}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": self.name(), "stop_sequence": None,
                "content": list(self.blocks()) if is_whole else [], "usage": usage,
                "stop_reason": self.stop_reason() if is_whole else None}

    def stop_reason(self):
        return "tool_use" if self.calls() else "end_turn"

    def block(self, index, block):
        """The start of a block has it empty; pieces of text, or of JSON, fill it."""
        is_text = block["type"] == "text"
        start = {**block, "text": ""} if is_text else {**block, "input": {}}
        kind, member = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
        yield self.event("content_block_start", index=index, content_block=start)
        for piece in model.pieces(block["text"] if is_text else json.dumps(block["input"]), 8):
            yield self.event("content_block_delta", index=index, delta={"type": kind, member: piece})
        yield self.event("content_block_stop", index=index)

    def lines(self):
        yield self.event("message_start", message=self.message(False))
        yield self.event("ping")
        for index, block in enumerate(self.blocks()):
            yield from self.block(index, block)
        yield self.event("message_delta", delta={"stop_reason": self.stop_reason(), "stop_sequence": None},
                         usage={"output_tokens": self.reply["completion_tokens"]})
        yield self.event("message_stop")

    def error_line(self, text):
        return self.event("error", error={"type": "overloaded_error", "message": text})

    def endless_line(self):
        return self.event("ping")


def results_in(body):
    """How many results of calls a request has, in any of the three forms."""
    flat = itertools.chain.from_iterable(
        [message, *(message["content"] if isinstance(message.get("content"), list) else [])]
        for message in body.get("messages", body.get("input", [])))
    kinds = ("tool_result", "function_call_output")
    return sum(part.get("role") == "tool" or part.get("type") in kinds for part in flat)


def shell_in(body):
    """The name of the tool that runs commands, and its argument's: a string, or a list as for exec."""
    for tool in body.get("tools") or []:
        function = tool.get("function", tool)
        if function.get("name", "").lower().split("__")[-1] in SHELLS:  # mcp__acp__Bash
            properties = function.get("parameters", function.get("input_schema"))["properties"]
            return function["name"], next(name for name in ("command", "cmd") if name in properties), properties
    return None


class Server(model.Server):
    """commands: what the agent is told to run, one a turn. edit: in place of them, the words of a reply, for an agent
    that has no tools and reads edits out of the text. fault: of every reply past the commands, such as silence."""
    chat_paths = {**model.Server.chat_paths, "/v1/responses": ("openai", Responses),
                  "/v1/messages": ("anthropic", Messages)}

    def __init__(self, commands, edit=None, fault=None):
        self.commands, self.edit, self.fault = commands, edit, fault
        super().__init__({"models": {}, "replies": [], "formats": ["openai", "anthropic"]})

    def model(self, _):
        """Any model is here, and takes roles in any order."""
        return {"alternates": False}

    def probes(self):
        return {**super().probes(), "/v1/messages/count_tokens": lambda _: (200, {"input_tokens": PROMPT_TOKENS})}

    def next_call(self, body):
        shell, at = shell_in(body), results_in(body)
        if not shell or at >= len(self.commands):
            return None
        name, argument, properties = shell
        command = self.commands[at]
        if properties[argument].get("type") == "array":
            command = ["sh", "-c", command]
        more = {name: value for name, value in REQUIRED.items() if name in properties}
        return {"name": name, "id": f"call_{at}", "arguments": {argument: command, **more}}

    def next_reply(self, body):
        call = self.next_call(body)
        reply = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS}
        if call:
            return {**reply, "content": "I run it.", "tool_calls": [call]}
        is_aside = not self.edit and not shell_in(body)  # a title of the conversation
        return {**reply, "content": self.edit or DONE, "fault": None if is_aside else self.fault}
