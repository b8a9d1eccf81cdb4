# SPDX-License-Identifier: Apache-2.0
"""The row of an agent's job. The model is the tests' scripted server, in this process; what it takes is not counted."""
import statistics
import time

from measure import duration, mib, row_alone
from rows import source_text
from servers import model

OUTPUT = 64 << 10


class TimedServer(model.Server):
    """Knows how long the client took from the last byte of each reply to the last byte of its next request."""

    def __init__(self, script):
        self.answered, self.turns = None, []
        super().__init__(script)

    def chat(self, connection, request, form):
        if self.answered:
            self.turns.append(request["at"] - self.answered)
        request["body"]["messages"] = []  # nobody here looks at them, and those of 500 requests are many
        keep = super().chat(connection, request, form)
        self.answered = time.perf_counter()
        return keep


def run(bench, command, steps):
    measured, result = bench.run(command), bench.result()
    bench.check(result["status"] == "success" and len(result["steps"]) == steps, result["failure_message"])
    return measured


def turns(bench):
    """A conversation that prints the end of a file again and again, each time a byte more of it; then its replay."""
    count = bench.size(500, 8)
    (bench.workspace / "text").write_text(source_text(OUTPUT + count), encoding="utf-8")
    bench.write_job(members={"execution_mode": "agent_inference", "inference": {"allowed_models": ["m"]}})
    replies = [model.call("run_command", argv=["tail", "-c", str(OUTPUT + turn), "text"]) for turn in range(count)]
    with TimedServer({"models": {"m": {"context_length": 131072}}, "replies": [*replies, model.ending()]}) as server:
        _, kib, processor = run(bench, ["env", f"OLLAMA_BASE_URL={server.url}", *bench.command()], count + 1)
    mean = statistics.mean(server.turns)
    recording = (bench.job_directory / "journal.jsonl").rename(bench.rival / "recording.jsonl")
    replays = [run(bench, [*bench.command(), "--replay", recording], count + 1) for _ in range(bench.size(5, 1))]
    replay, _, replaying = (statistics.median(values) for values in zip(*replays))
    return [row_alone(f"a turn of {count}, 64 KiB of output each: mean from a reply's end to the next request's",
                      duration(mean), mean * 1000, 5, "ms"),
            row_alone("the same, processor time of runner and commands", duration(processor / count),
                      processor / count * 1000, 5, "ms"),
            row_alone("the same, peak memory", mib(kib), kib / 1024, 24, "MiB"),
            row_alone(f"replay of these {count} turns, start to result", duration(replay), replay, 2, "s"),
            row_alone("the same, processor time", duration(replaying), replaying, 2, "s")]


ALL = {"turns": turns}
