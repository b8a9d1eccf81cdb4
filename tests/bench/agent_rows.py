# SPDX-License-Identifier: Apache-2.0
"""Rows of agent jobs: what a turn costs beside the model, what a long conversation holds in memory, the journal and its replay. The
model is the scripted server of the tests, in this process; a turn is timed from the last byte of its reply to the last byte of the
next request."""
import json
import statistics
import time

from measure import duration, mib, row_alone, verdict
from servers import model

OUTPUT = 64 << 10
CONTEXT = 131072  # tokens
APPENDS = """
local module = require "sba.run.journal"
local journal = module.begin(assert(module.lock(arg[1], true)), true, function(failure) error(failure.message) end)
local entry = '{"output":"' .. ("x"):rep(64 << 10) .. '"}'
local taken = {}
for i = 1, 1000 do
  local begun = os.clock()
  journal:step_finished(entry)
  taken[i] = os.clock() - begun
end
table.sort(taken)
print(taken[500])
"""

FACTS = """
local facts, now = require "sba.agent.facts", require "native.interrupt".now
local begun = now()
facts.of {
  workspace = require "native.workspace".open(arg[1]), artifacts = true, constraints = { max_runtime_seconds = 60, max_output_bytes = 1000 },
  environment = { PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" }, agents_md = true, context_length = 32768,
}
print(now() - begun)
"""


class TimedServer(model.Server):
    """Knows when each request had come and each answer gone, and how large the requests were."""

    def __init__(self, script):
        self.arrived, self.answered, self.sizes = [], [], []
        super().__init__(script)

    def read(self, connection):
        request = super().read(connection)
        if request and request["path"] == "/api/chat":
            self.arrived.append(request["at"])
            self.sizes.append(request["size"])
            request["body"].pop("messages")  # nobody here looks at them, and 200 of them are many
        return request

    def chat(self, connection, request, form):
        keep = super().chat(connection, request, form)
        self.answered.append(time.perf_counter())
        return keep


def script(turns):
    """A conversation that looks at one file after the other."""
    replies = [{"content": "", "tool_calls": [{"name": "run_command", "arguments": {"argv": ["cat", f"{turn}.txt"]}}]}
               for turn in range(turns)]
    return {"models": {"m": {"capabilities": ["completion", "tools"], "context_length": CONTEXT}},
            "replies": [*replies, model.ending("done")]}


def prepare(bench, turns):
    for turn in range(turns):
        line = f"{turn}: " + "words of an output that a tool prints, a line of them, and then the next one\n"
        (bench.workspace / f"{turn}.txt").write_text((line * (OUTPUT // len(line) + 1))[:OUTPUT], encoding="utf-8")
    bench.give_tree(bench.workspace)
    job = {"protocol_version": "1.0", "job_id": "bench", "task_id": "bench", "execution_mode": "agent_inference",
           "constraints": {"max_runtime_seconds": 3600, "max_output_bytes": 1 << 20}, "inference": {"allowed_models": ["m"]}}
    path = bench.job_directory / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    bench.give(path)


def converse(bench, turns):
    """Runs a job of so many turns: (its server, KiB)."""
    with TimedServer(script(turns)) as server:
        _, kib = bench.run(["env", f"OLLAMA_BASE_URL={server.url}", *bench.command()])
    result = bench.result()
    bench.check(result["status"] == "success" and len(result["steps"]) == turns + 1, result["failure_message"])
    return server, kib


def quarter(values, which):
    size = max(1, len(values) // 4)
    return statistics.median(values[:size] if which == 0 else values[-size:])


def turns(bench):
    count = bench.size(200, 8)
    prepare(bench, count)
    server, kib = converse(bench, count)
    taken = [after - before for before, after in zip(server.answered, server.arrived[1:])]
    median = statistics.median(taken)
    growth = quarter(taken, 1) / quarter(taken, 0)
    transcript = quarter(server.sizes, 1) / quarter(server.sizes, 0)
    what = f"a turn of {count} with outputs of 64 KiB, beside the model"
    return [row_alone(what, duration(median), median * 1000, 5, "ms"),
            f"| the same, last quarter against first | | the requests' size | | {growth:.2f} of {transcript:.2f} | ≤ 1 × | "
            f"{verdict(growth, transcript)} |",
            row_alone("the same, peak memory", mib(kib), kib / 1024, 32, "MiB")]


def journal(bench):
    median = bench.number_printed(APPENDS, bench.job_directory / "journal.jsonl")
    return [row_alone("append of 64 KiB to the journal", duration(median), median * 1000, 0.2, "ms")]


def replay(bench):
    count = bench.size(500, 8)
    prepare(bench, count)
    converse(bench, count)
    recording = bench.rival / "recording.jsonl"
    (bench.job_directory / "journal.jsonl").rename(recording)
    runs = []
    for _ in range(bench.size(5, 1)):
        runs.append(bench.run([*bench.command(), "--replay", recording])[0])
        result = bench.result()
        bench.check(result["status"] == "success" and len(result["steps"]) == count + 1, result["failure_message"])
    median = statistics.median(runs)
    return [row_alone(f"replay of a journal of {count} turns", duration(median), median, 2, "s")]


def facts(bench):
    count = bench.size(200000, 400)
    directories = [bench.workspace / f"directory-{number}" for number in range(200)]
    for directory in directories:
        directory.mkdir()
    for number in range(count // 2):
        (directories[number % 200] / f"file-of-a-huge-workspace-{number}").touch()
        (bench.workspace / f"file-{number}").touch()
    bench.give_tree(bench.workspace)
    median = statistics.median(bench.number_printed(FACTS, bench.workspace) for _ in range(bench.size(20, 1)))
    return [row_alone(f"facts of a workspace of {count:,} files, before the first request", duration(median), median * 1000, 20, "ms")]


ALL = {"turns": turns, "facts": facts, "journal": journal, "replay": replay}
