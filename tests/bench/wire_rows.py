# SPDX-License-Identifier: Apache-2.0
"""Rows of what goes over the wire: calls of the gateway's tools, and an artifact's upload. The server is a thread of the benchmark
that says how long it took itself, from a request's first byte to its answer's last."""
import json
import statistics
import time

from measure import duration, mib, row_alone
from servers import listener

MIB = 1 << 20


class Gateway(listener.Listener):
    """An MCP server of revision 2026-07-28 that answers every call with a word. seconds: its own time."""

    def __init__(self):
        self.seconds, self.calls, self.received = 0.0, 0, 0
        super().__init__()
        self.environment = f"SBA_MCP_GATEWAY_URL={self.url}/mcp"

    def serve(self, connection):
        while data := connection.recv(65536):
            begun = time.perf_counter()
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            self.answer(connection, *data.split(b"\r\n\r\n", 1))
            self.seconds += time.perf_counter() - begun

    def answer(self, connection, head, body):
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        large = size > MIB
        received = len(body)
        while received < size:
            piece = connection.recv(MIB)
            received += len(piece)
            body = b"" if large else body + piece  # a large body is an upload, which nobody here keeps
        self.received += received
        message = {"id": 1, "method": "tools/call"} if large else json.loads(body)
        if large:
            message["id"] = self.calls + 3  # after server/discover and tools/list
        connection.sendall(self.reply(message))

    def reply(self, message):
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("help.get", "artifact.put")]
        known = {"server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}, "tools/list": {"tools": tools}}
        self.calls += message["method"] == "tools/call"
        result = known.get(message["method"], {"content": [{"type": "text", "text": "word"}]})
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def run(bench, gateway):
    """Runs the job with the gateway: (seconds less the gateway's own, KiB, its result)."""
    gateway.seconds, gateway.calls, gateway.received = 0.0, 0, 0
    seconds, kib = bench.run(["env", gateway.environment, *bench.command()])
    result = bench.result()
    bench.check(result["status"] == "success", result["failure_message"])
    return seconds - gateway.seconds, kib, result


def calls(bench):
    count = bench.size(100, 10)
    gateway = Gateway()
    runs = {0: [], count: []}
    for _ in range(bench.size(20, 1)):
        for steps, seconds in runs.items():
            bench.write_job(*[("call_tool", {"tool": "help.get", "arguments": {}})] * steps)
            taken, _, result = run(bench, gateway)
            bench.check(gateway.calls == steps and all(step["output"] == "word" for step in result["steps"]), "a call went wrong")
            seconds.append(taken)
    gateway.close()
    each = (statistics.median(runs[count]) - statistics.median(runs[0])) / count
    return [row_alone(f"each of {count} `call_tool` over loopback, less the server's time", duration(each), each * 1000, 1, "ms")]


def upload(bench):
    size = bench.size(64, 2) * MIB
    directory = bench.job_directory / "artifacts"
    directory.mkdir()
    (directory / "big").write_bytes(b"\x5a" * size)
    bench.give_tree(bench.job_directory)
    bench.write_job()
    gateway = Gateway()
    runs = []
    for _ in range(bench.size(7, 1)):
        seconds, kib, result = run(bench, gateway)
        bench.check(result["artifacts"][0].get("ref") == "word" and gateway.received > size * 4 // 3, "the artifact did not arrive")
        runs.append((seconds + gateway.seconds, kib))
    gateway.close()
    kib = max(run[1] for run in runs)
    return [f"| upload of a 64 MiB artifact, digest and base64 | {duration(statistics.median(run[0] for run in runs))} | | | | | |",
            row_alone("the same, peak memory", mib(kib), kib / 1024, 16, "MiB")]


ALL = {"calls": calls, "upload": upload}
