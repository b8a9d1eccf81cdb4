# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a client and a model server. A fault is a name, or {"name": ..., its own fields}.

Instead of an answer:
    tools_unsupported       400 as Ollama and others say it; "text" replaces the words, "status" the status
    call_unparsed           500 as Ollama says that it cannot parse the model's tool call; "text" for other words
    model_missing, bad_request, context_exceeded, quota, unauthorized, script_ended
    busy                    503                       rate_limited   429, "retry_after": of the header, absent: none
    status                  "status" and "body" as given
    html, empty, invalid_json, huge ("bytes", default 2 GB of content), nothing (closed without a byte)
    silence                 "seconds" before the first byte, then as if nothing was

In the stream:
    calls_on_done           all calls on Ollama's last line    no_done       the last line or [DONE] is missing
    error_midstream         an error after the first line      cut_midline   closed in the middle of a line
    unended                 ends in good order after the first line
    endless                 never ends; "pause" seconds between its lines
    pause                   "seconds" after the first line     byte_by_byte  one byte at a time
    noise                   a line that is no JSON after the first
    crlf                    lines end CR LF                not_streamed  one JSON object although a stream was asked for

In the reply (model.py): arguments_swapped (a string for an object and the other way round)
"""
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
           405: "Method Not Allowed",
           429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable"}


class Fault:
    def __init__(self, given):
        self.fields = given if isinstance(given, dict) else {}
        self.name = self.fields.get("name") if isinstance(given, dict) else given

    def get(self, field, otherwise=None):
        return self.fields.get(field, otherwise)


def refuse(answer, form, status, text, *headers, **fields):
    """form: a Writer of model.py, which says how its API words an error."""
    answer.whole(status, form.error(status, text, **fields), "application/json", *headers)


REFUSALS = {
    "tools_unsupported": (400, "registry.ollama.ai/library/m does not support tools"),
    "model_missing": (404, "model 'm' not found"),
    "call_unparsed": (500, "error parsing tool call: raw='{\"path\": \"a', err=unexpected end of JSON input"),
    "bad_request": (400, "json: cannot unmarshal string into Go struct field"),
    "busy": (503, "server busy, please try again.  maximum pending requests exceeded"),
    "unauthorized": (401, "Incorrect API key provided"),
    "rate_limited": (429, "Rate limit reached"),
    "script_ended": (403, "the script of the test has no more replies"),
}


def refuse_by_name(fault, answer, form):
    status, text = REFUSALS[fault.name]
    headers = [f"Retry-After: {fault.get('retry_after')}"] if "retry_after" in fault.fields else []
    refuse(answer, form, fault.get("status", status), fault.get("text", text), *headers)


def context_exceeded(fault, answer, form):
    window = fault.get("window", 4096)
    inner = '{"error":{"code":400,"message":"the request exceeds the available context size","type":' \
            f'"exceed_context_size_error","n_prompt_tokens":{fault.get("tokens", window * 2)},"n_ctx":{window}}}}}'
    answer.whole(400, form.error(400, inner) if form.nests_errors else inner.encode())


def huge(fault, answer, _):
    size = fault.get("bytes", 2 << 30)
    answer.keep = False
    answer.head(200, "application/x-ndjson", f"Content-Length: {size}")
    block = b'{"message":{"role":"assistant","content":"' + b"x" * (1 << 20)
    while size > 0:
        answer.connection.sendall(block[:size])
        size -= len(block)
        block = b"x" * (1 << 20)


def say_status(fault, answer, _):
    body = fault.get("body", "")
    body = body.encode() if isinstance(body, str) else body
    answer.whole(fault.get("status"), body, fault.get("kind", "application/json"))


def nothing(_, answer, __):
    answer.keep = False


INSTEAD = {
    "status": say_status, "context_exceeded": context_exceeded, "huge": huge, "nothing": nothing,
    "quota": lambda _, answer, form: refuse(
        answer, form, 429, "You exceeded your current quota", code="insufficient_quota"),
    "html": lambda _, answer, __: answer.whole(200, b"<html><body><h1>Welcome</h1></body></html>\n", "text/html"),
    "empty": lambda _, answer, __: answer.whole(200, b""),
    "invalid_json": lambda _, answer, __: answer.whole(200, b'{"message": {"content": oops}}\n'),
    **{name: refuse_by_name for name in REFUSALS},
}


def instead(fault, answer, stopping, form):
    """Answers with the fault alone; False where the real answer must follow."""
    if fault.name == "silence":
        stopping.wait(fault.get("seconds"))
    if fault.name not in INSTEAD:
        return False
    INSTEAD[fault.name](fault, answer, form)
    return True


def endless(fault, answer, writer, stopping):
    answer.keep = False
    while not stopping.is_set():
        answer.chunk(writer.endless_line())
        if fault.get("pause"):
            stopping.wait(fault.get("pause"))


LAST = (b'"done": true', b'"finish_reason": "', b"event: response.completed", b"event: message_delta",
        b"event: message_stop")


def stream(fault, answer, writer, stopping):
    if fault.name == "endless":
        return endless(fault, answer, writer, stopping)
    for index, line in enumerate(writer.lines()):
        if fault.name == "crlf":
            line = line.replace(b"\n", b"\r\n")
        if fault.name == "no_done" and (any(mark in line for mark in LAST) or b'"choices": []' in line):
            continue
        if fault.name == "cut_midline" and index == 1:
            answer.keep = False
            return answer.raw(b"%x\r\n%s" % (len(line), line[:len(line) // 2]))
        answer.chunk(line)
        if index == 0 and fault.name == "error_midstream":
            answer.chunk(writer.error_line(fault.get("text", "llama runner process has terminated")))
            break
        if index == 0 and fault.name == "noise":
            answer.chunk(b"data: upstream timed out\n\n")
        if index == 0 and fault.name == "unended":
            break
        if index == 0 and fault.name == "pause":
            stopping.wait(fault.get("seconds"))
    answer.end()
