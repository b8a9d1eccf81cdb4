# SPDX-License-Identifier: Apache-2.0
"""What tests of secrets share: every byte of every sink of a run is searched for one, by means of their own."""
import base64
import pathlib
import re
import urllib.parse

import leak
from agent_case import AgentCase
from servers import mcp, status

PYTHON = "/usr/bin/python3"  # Debian's: any user may run it
HERE = pathlib.Path(__file__).parent
TOKEN = "sba-Zq83+Lm/0pWx=_7rTgB~hy2K"
LEAKED = 9  # so many characters of it are a leak
WAYS = sorted(set(leak.ways(TOKEN)) - {"environment"})


def unescaped(data):
    data = re.sub(rb"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)).encode("utf-8", "replace"), data)
    return re.sub(rb"\\([^nrt])", rb"\1", data)


def decoded(data):
    """Of the base64 in it, at any of the four places where a group may begin."""
    least = LEAKED * 4 // 3
    for run in set(re.findall(rb"(?:[A-Za-z0-9+/_-]|\\+[nr/]|\s|%%2[BFbf]){%d,}" % least, data)):
        run = re.sub(rb"\\+[nr]|\s|\\", b"", urllib.parse.unquote_to_bytes(run))
        run = run.replace(b"-", b"+").replace(b"_", b"/")
        for start in range(4):
            part = run[start:]
            yield base64.b64decode(part[:len(part) // 4 * 4])


def views(data):
    """The bytes as they are, and without the result's escapes and another encoding."""
    for one in {data, unescaped(data)}:
        for two in {one, urllib.parse.unquote_to_bytes(one), unescaped(one)}:
            yield two
            yield from decoded(two)


def leaks(data, secret=TOKEN):
    secret = secret.encode()
    parts = [secret[i:i + LEAKED] for i in range(max(1, len(secret) - LEAKED + 1))]
    seen = b"\0".join({*views(data)})
    return sorted({part for part in parts if part in seen})


class SecretCase(AgentCase):
    def setUp(self):
        super().setUp()
        self.put("leak.py", (HERE / "leak.py").read_bytes())
        self.put("loot", TOKEN)

    def status_server(self):
        return self.closing(status.Server())

    def gateway(self, **tools):
        return self.closing(mcp.Server(tools={name: ({}, function) for name, function in tools.items()}))

    def leak(self, way):
        return self.run_command(PYTHON, args=["leak.py", way])

    def left(self, outcome, servers=()):
        """Every sink of a run, by name. What lies in the artifacts directory is the job's own."""
        sinks = {"stdout": outcome.stdout, "stderr": outcome.stderr}
        for path in self.job_directory.rglob("*"):
            if path.is_file() and path.name != "job.json" and "artifacts" not in path.parts:
                sinks[str(path.relative_to(self.job_directory))] = path.read_bytes()
                sinks["name of " + path.name] = path.name.encode()
        for number, sent in enumerate(servers):
            sinks[f"server {number}"] = sent
        return sinks

    def assert_clean(self, outcome, secret=TOKEN, servers=()):
        for name, data in self.left(outcome, servers).items():
            found = leaks(data, secret)
            if found:
                where = next((view.find(found[0]), view) for view in views(data) if found[0] in view)
                self.fail(f"{name} gives away {found[0]}: {where[1][max(0, where[0] - 200):where[0] + 100]}")

    def run_secret(self, job, *more, env=None, **options):
        return self.run_job(job, *more, env={"SBA_MCP_TOKEN": TOKEN, **(env or {})}, **options)
