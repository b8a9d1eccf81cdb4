# SPDX-License-Identifier: Apache-2.0
"""Makes an ATIF document (Agent Trajectory Interchange Format, Harbor's RFC 0001) of a run's journal.

    python3 -m cynode_sba.atif journal.jsonl >trajectory.json

Needs Python 3.12 and PyPI's `atif`, whose model the document is made with: pip install 'cynode-sba[atif]'. A journal that ends early,
as after a kill, gives the document of what it has, with a note. The journal has no secrets of the runner: they are redacted there.
"""
import hashlib
import json
import pathlib
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import atif

MOST_SHOWN = 16384  # characters of a step's output that no model was shown
USUAL_ENDS = (None, "stop", "tool_calls")

Event = dict[str, Any]


def _outcome(entry: Event) -> str:
    """What came of a step, as a model is told it."""
    text = entry.get("output") or (json.dumps(entry["result"], ensure_ascii=False) if entry.get("result") is not None else "")
    if entry.get("error"):
        text = f"failed ({entry.get('error_code') or entry['status']}): {entry['error']}\n{text}"
    half = MOST_SHOWN // 2
    return text if len(text) <= MOST_SHOWN else f"{text[:half]}\n[... {len(text) - MOST_SHOWN} characters ...]\n{text[-half:]}"


def _about(entry: Event | None) -> Event | None:
    names = ("status", "exit_code", "duration_ms", "error_code")
    return entry and {"step": entry["id"], **{name: entry[name] for name in names if name in entry}}


def _metrics(reply: Event) -> Event | None:
    """0 tokens are unknown."""
    found: Event = {name: reply[name] for name in ("prompt_tokens", "completion_tokens") if reply.get(name)}
    if reply.get("duration_ms") is not None:
        found["extra"] = {"duration_ms": reply["duration_ms"]}
    return found or None


class _Turn:
    """A reply of the model, whose answers the journal has with the next request, and the steps that began after it."""

    def __init__(self, event: Event):
        reply = event["reply"]
        extra = {name: reply[name] for name in ("notes", "unreadable") if reply.get(name)}
        if reply.get("done_reason") not in USUAL_ENDS:
            extra["done_reason"] = reply["done_reason"]
        self.calls = [{"tool_call_id": call.get("id") or f"call-{number}", "function_name": call["name"], "arguments": call["arguments"]}
                      for number, call in enumerate(reply.get("tool_calls") or [], 1)]
        self.step = {"timestamp": event.get("at"), "source": "agent", "message": reply.get("content") or "",
                     "reasoning_content": reply.get("thinking") or None, "metrics": _metrics(reply), "llm_call_count": 1,
                     "extra": extra or None, "tool_calls": self.calls or None}
        self.entries: list[Event] = []

    def close(self, answers: list[Event] | None) -> list[Event]:
        """The turn as a step, and the steps since that no call made. None: no request has the answers; the steps have them."""
        left = {entry["id"]: entry for entry in self.entries}
        if answers is None:
            called = [entry for entry in self.entries if not entry.get("check")]
            answers = [{"content": _outcome(entry), "step": entry["id"]} for entry in called[:len(self.calls)]]
        results = []
        for number, answer in enumerate(answers):
            call = self.calls[number]["tool_call_id"] if number < len(self.calls) else None
            entry = left.pop(answer.get("step"), None)
            results.append({"source_call_id": call, "content": answer.get("content") or "", "extra": _about(entry)})
        self.step["observation"] = {"results": results} if results else None
        return [self.step, *map(_own_step, left.values())]


def _own_step(entry: Event) -> Event:
    """A step that no model called: of a direct job, or a check. ask_model is a request to a model all the same."""
    asked = entry.get("result") if entry["type"] == "ask_model" else None
    return {"timestamp": entry.get("started_at"), "source": "agent", "message": entry["type"],
            "model_name": asked and asked["model"], "metrics": _metrics(asked) if asked else None, "llm_call_count": 1 if asked else 0,
            "tool_calls": [{"tool_call_id": entry["id"], "function_name": entry["type"], "arguments": entry.get("arguments") or {}}],
            "observation": {"results": [{"source_call_id": entry["id"], "content": _outcome(entry), "extra": _about(entry)}]},
            "extra": {"check": entry["check"]} if entry.get("check") else None}


class _Reader:
    """Makes the steps of a document from the events of a journal, in their order."""

    def __init__(self, arguments: dict[str, Event]):
        self.arguments = arguments  # of the job's own steps, by id
        self.job: Event = {}
        self.session: Event = {}
        self.steps: list[Event] = []
        self.turn: _Turn | None = None
        self.begun: Event | None = None
        self.changes: list[Event] = []  # of the conversation, since the last turn
        self.result: Event = {"status": "interrupted"}

    def read(self, event: Event) -> None:
        kind = event["event"].replace(".", "_")
        getattr(self, f"read_{kind}", lambda _: None)(event)

    def read_job(self, event: Event) -> None:
        if self.job:
            raise ValueError("a second job begins")
        self.job = event

    def read_model_session(self, event: Event) -> None:
        self.session = event

    def read_job_resumed(self, event: Event) -> None:
        self.changes.append({"timestamp": event.get("at"), "source": "system", "message": "The run was interrupted. It continues here."})

    def read_model_compacted(self, event: Event) -> None:
        counts = {name: event[name] for name in ("tokens_before", "tokens_after")}
        self.changes.append({
            "timestamp": event.get("at"), "source": "system", "message": "The conversation was shortened to fit the model's context.",
            "extra": {"context_management": {"type": "compaction", "boundary": "replace", **counts}}})

    def read_model_exchange(self, event: Event) -> None:
        began = None if self.turn else self.job.get("started_wall")
        at = datetime.fromtimestamp(began / 1000, UTC).isoformat(timespec="milliseconds") if began else None
        messages = event.get("messages") or []
        self.end_turn([message for message in messages if message["role"] == "tool"])
        self.steps += [{"timestamp": at, "source": "system" if message["role"] == "system" else "user",
                        "message": message.get("content") or ""} for message in messages if message["role"] != "tool"]
        self.turn = _Turn(event)

    def read_step_started(self, event: Event) -> None:
        self.begun = event

    def read_step_finished(self, event: Event) -> None:
        begun = self.begun if self.begun and self.begun["id"] == event["entry"]["id"] else {}
        self.begun = None
        if event["entry"]["status"] != "skipped":
            self.add({"check": begun.get("check"), "arguments": begun.get("arguments"), **event["entry"]})

    def read_job_finished(self, event: Event) -> None:
        self.result = event["result"]

    def add(self, entry: Event) -> None:
        entry["arguments"] = entry.get("arguments") or self.arguments.get(entry["id"])
        if self.turn:
            self.turn.entries.append(entry)
        else:
            self.steps.append(_own_step(entry))

    def end_turn(self, answers: list[Event] | None) -> None:
        self.steps += self.turn.close(answers) if self.turn else []
        self.steps += self.changes
        self.turn, self.changes = None, []

    def end(self) -> None:
        """A job that did not end well, or did nothing, has a last step that says so."""
        if self.begun:
            self.add({**self.begun, "status": "interrupted", "error": "the runner was ended while this step ran"})
        self.end_turn(None)
        code, message = self.result.get("failure_code"), self.result.get("failure_message")
        if self.result["status"] != "success" or not self.steps:
            said = f"The job ended: {code}: {message}" if code else f"The job ended: {self.result['status']}."
            self.steps.append({"source": "system", "message": said})


def trajectory(lines: Iterable[bytes], arguments: dict[str, Event] | None = None) -> atif.Trajectory:
    """The document of a journal's lines. arguments: of a direct job's steps, by id. Raises ValueError where it is no journal."""
    reader, note = _Reader(arguments or {}), None
    for number, line in enumerate(lines, 1):
        try:
            if not line.endswith(b"\n"):
                raise ValueError("it is incomplete, as after a kill")
            reader.read(json.loads(line))
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            note = f"The journal was read up to line {number}: {problem}."
            break
    if not reader.job:
        raise ValueError(note or "it is empty")
    reader.end()
    metrics = [step.get("metrics") or {} for step in reader.steps]
    totals = {f"total_{name}": sum(one.get(name) or 0 for one in metrics) or None for name in ("prompt_tokens", "completion_tokens")}
    about = {name: reader.job.get(name) for name in ("job_id", "task_id", "job_sha256")}
    ends = {name: reader.result.get(name) for name in ("status", "failure_code", "failure_message", "acceptance")}
    return atif.Trajectory.model_validate({
        "schema_version": "ATIF-v1.8", "session_id": about["job_id"] or None, "notes": note,
        "agent": {"name": "cynode-sba", "version": reader.job.get("version") or "unknown", "model_name": reader.session.get("model")},
        "steps": [{"step_id": number, **step} for number, step in enumerate(reader.steps, 1)],
        "final_metrics": {**totals, "total_steps": len(reader.steps)},
        "extra": {name: value for name, value in {**about, **ends}.items() if value is not None}})


def of_file(path: pathlib.Path) -> atif.Trajectory:
    """The document of a journal. job.json beside it has the arguments of a direct job's steps, if it is the same job."""
    with open(path, "rb") as file:
        digest = json.loads(file.readline() or b"{}").get("job_sha256")
        file.seek(0)
        job = path.with_name("job.json")
        data = job.read_bytes() if job.is_file() else b""
        steps = json.loads(data).get("steps") or [] if hashlib.sha256(data).hexdigest() == digest else []
        named = {step.get("id") or f"step-{number}": step.get("arguments") or step.get("args") for number, step in enumerate(steps, 1)}
        return trajectory(file, named)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python3 -m cynode_sba.atif JOURNAL", file=sys.stderr)
        return 2
    try:
        print(of_file(pathlib.Path(sys.argv[1])).model_dump_json(exclude_none=True))
    except (AttributeError, OSError, TypeError, ValueError) as problem:
        print(f"cannot make a trajectory of the journal {sys.argv[1]}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
