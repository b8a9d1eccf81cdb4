# SPDX-License-Identifier: Apache-2.0
"""real_servers.py BINARY NODE_MODULES: the MCP client against servers of the official SDKs, and whole jobs whose
gateway is a server as people run it: one that speaks Streamable HTTP itself, or one of stdio behind a bridge. They are
pinned, from PyPI, npm and Go's proxy. What cannot be had is skipped, with the reason.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
os.environ["SBA_BINARY"], NODE_MODULES = sys.argv[1:]
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent)]
import packages  # noqa: E402
from agent_case import call  # noqa: E402
from gateway_case import OWN, GatewayCase, TalkingCase  # noqa: E402
from servers import nginx  # noqa: E402
from servers.real import free_port, listening  # noqa: E402

GO_MODULES = ["github.com/modelcontextprotocol/go-sdk@v1.8.0"]
# By PyPI's SDK that they need: 1 or 2.
PACKAGES = {
    1: ["mcp-proxy==0.13.0", "mcp-server-sqlite==2025.4.25", "mcp==1.30.0"],
    2: ["mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19", "mcp-server-fetch==2026.10.24",
        "excel-mcp-server==2.2.2"],
}
# What the SDK's own client lists, but for what only runs as a task.
LIST = """
import asyncio, json, sys
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
async def main():
    async with streamablehttp_client(sys.argv[1]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        print(json.dumps([tool.name for tool in (await session.list_tools()).tools
                          if getattr(tool.execution, "taskSupport", None) != "required"]))
asyncio.run(main())
"""
PICTURE = r"\[image, image/png, %s bytes\]"


def python(version):
    port, programs = free_port(), packages.environment(f"mcp-sdk-{version}", f"mcp=={version}", oldest=(3, 10))
    return listening(port, programs / "python", HERE / "server.py", port)


def go():
    port = free_port()
    return listening(port, packages.go_program("mcp-go", HERE / "server.go", *GO_MODULES), port)


class Servers(TalkingCase):
    def used(self, url, era):
        first, said = self.talk(url, ("echo", {"message": "grüße"}), ("rows", {}), ("nothing", {}))
        self.assertEqual((first["era"], first["instructions"]), (era, "Call echo."))
        self.assertEqual(said[0]["answer"]["content"], "grüße")
        self.assertNotIn("structured", said[0]["answer"])
        self.assertEqual(json.loads(said[1]["answer"]["content"]), {"a": 1, "b": [1, 2]})
        self.assertEqual(said[2]["failure"]["code"], "unknown_tool")
        self.assertEqual(self.talk(url, ("slow", {}), limits={"idle": 2})[1][0]["answer"]["content"], "slept")

    def test_python_sdk_2(self):
        with python("2.3.0") as url:
            self.used(url, "modern")
            self.assertIn("refused", self.talk(url, ("ask", {}))[1][0]["answer"]["content"])

    def test_python_sdk_1(self):
        with python("1.30.0") as url:
            self.used(url, "legacy")
            # It asks on the standalone stream, and waits.
            self.assertIn("refused", self.talk(url, ("ask", {}))[1][0]["answer"]["content"])

    @unittest.skipUnless(nginx.is_there(), "nginx is not installed")
    def test_an_idle_limit_on_the_way(self):
        """The server reports progress, for the call asks for it; nginx ends an answer that says nothing for so long."""
        with python("1.30.0") as url:
            locations = {"/mcp": f"proxy_pass {url}; proxy_read_timeout 1s;"}
            between = nginx.Nginx({"listen": "http", "locations": locations})
            with contextlib.closing(between):
                self.assertEqual(self.talk(between.urls[0] + "/mcp", ("slow", {}))[1][0]["answer"]["content"], "slept")

    def test_go_sdk(self):
        with go() as url:
            self.used(url, "legacy")
            self.assertIn("refused", self.talk(url, ("ask", {}))[1][0]["answer"]["content"])


def pypi(sdk, program):
    return packages.environment(f"mcp-jobs-{sdk}", *PACKAGES[sdk], oldest=(3, 10)) / program


def npm(name):
    if not NODE_MODULES:
        raise unittest.SkipTest("npm's packages cannot be had")
    return f"{NODE_MODULES}/{name}/dist/index.js"


def supergateway(server, *arguments):
    """A server of npm behind npm's bridge."""
    bridge, program = npm("supergateway"), npm(f"@modelcontextprotocol/server-{server}")
    command = " ".join(["node", program, *map(str, arguments)])
    return lambda port: ["node", bridge, "--stdio", command, "--outputTransport", "streamableHttp", "--stateful",
                         "--port", port]


def mcp_proxy(*command):
    """Any server behind PyPI's bridge."""
    proxy = pypi(1, "mcp-proxy")
    return lambda port: [proxy, "--port", port, "--", *command]


def offered_as(name):
    """What a tool is called for the model: one of the runner's own may have that name."""
    return name + "_2" if name in {*OWN, "finish"} else name


class Jobs(GatewayCase):
    """Each test runs a server, and a job that makes all its calls: a tool, its arguments, and a pattern of what comes
    of it. The name of a tool that fails begins with "!"."""

    def uses(self, command, *calls):
        port = free_port()
        with listening(port, *command(port)) as url:
            listed = subprocess.run([pypi(1, "python"), "-c", LIST, url], capture_output=True, check=True, timeout=60)
            replies = [call(offered_as(name.strip("!")), **arguments) for name, arguments, _ in calls]
            outcome, model = self.agent(url, *replies, models={"m": {"context_length": 131072}})
        self.assert_end(outcome, 0)
        self.assertEqual(set(self.offered(model)) - {*OWN, "finish"},
                         {offered_as(name) for name in json.loads(listed.stdout)})
        self.check_calls(outcome, model, calls)
        journal = [json.loads(line) for line in self.journal_file.read_text().splitlines()]
        recorded = [event["entry"]["result"] for event in journal if event["event"] == "step.finished"]
        self.assertEqual(recorded, [step["result"] for step in outcome.steps])

    def check_calls(self, outcome, model, calls):
        for number, (step, (name, _, wanted)) in enumerate(zip(outcome.steps, calls, strict=True), 1):
            with self.subTest(name):
                failed, result = name.startswith("!"), step["result"]
                self.assertEqual((step["type"], step["status"]), ("call_tool", "failure" if failed else "success"))
                self.assertEqual(result["is_error"], failed)
                self.assertNotIn("structured", result)  # of all these servers it says the same as the text
                self.assertRegex(result["content"], r"(?s)\A(?:%s)\Z" % wanted)
                self.assertIn(result["content"].split("\n")[0], self.told(model, number))
                head = "failed (step_failed): " if failed else result["content"]
                self.assertTrue(self.told(model, number).startswith(f"[step-{number}]\n{head}"))

    def test_a_list_that_changes(self):
        for name, serve in (("Python", lambda: python("1.30.0")), ("Go", go)):
            with self.subTest(name), serve() as url:
                outcome, model = self.agent(url, call("grow"), call("grown"))
                self.assertEqual([step["result"]["content"] for step in outcome.steps], ["grows", "grown"])
                self.assertEqual(self.offered(model, 1).keys() - self.offered(model).keys(), {"grown"})

    def test_everything(self):
        serve = ["node", npm("@modelcontextprotocol/server-everything"), "streamableHttp"]
        self.uses(lambda port: ["env", f"PORT={port}", *serve],
                  ("echo", {"message": "grüße"}, "Echo: grüße"),
                  ("get-structured-content", {"location": "Chicago"}, r'\{"temperature":36,.*\}'),
                  ("get-tiny-image", {}, f".*\n{PICTURE % 4033}\n.*"),
                  ("get-resource-links", {"count": 2}, r".*\n\[resource demo:\S+/1: Resource 1: .*\]\n\[resource .*\]"),
                  ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, ".*\nResource 1: This is a .*"),
                  ("get-resource-reference", {"resourceType": "Blob", "resourceId": 1},
                   r".*\n\[resource demo://resource/dynamic/blob/1, text/plain, \d+ bytes\]\n.*"),
                  ("trigger-long-running-operation", {"duration": 1, "steps": 4}, ".*completed.*"),
                  *(("echo", {"message": str(number)}, f"Echo: {number}") for number in range(100)),
                  ("!get-sum", {"a": "two"}, "MCP error -32602: .*expected number.*"),
                  ("get-sum", {"a": 2, "b": 40}, ".* 42.*"))

    def test_filesystem(self):
        self.put("a.txt", "hello\n")
        self.put("dot.png", b"\x89PNG\r\n")
        here = self.workspace
        self.uses(supergateway("filesystem", here),
                  ("list_directory", {"path": str(here)}, r"\[FILE\] a.txt\n\[FILE\] dot.png"),
                  ("read_text_file", {"path": f"{here}/a.txt"}, "hello\n"),
                  ("read_media_file", {"path": f"{here}/dot.png"}, PICTURE % 6),
                  ("!read_text_file", {"path": "/etc/passwd"}, "Access denied - path outside allowed directories: .*"),
                  ("write_file", {"path": f"{here}/b", "content": "ä"}, f"Successfully wrote to {here}/b"))
        self.assertEqual(self.text("b"), "ä")

    def test_memory(self):
        ada = {"name": "Ada", "entityType": "person", "observations": ["writes"]}
        shown = r'\{\s*"name": "Ada",\s*"entityType": "person",\s*"observations": \[\s*"writes"\s*\]\s*\}'
        self.uses(lambda port: ["env", f"MEMORY_FILE_PATH={self.root}/memory", *supergateway("memory")(port)],
                  ("create_entities", {"entities": [ada]}, rf"\[\s*{shown}\s*\]"),
                  ("read_graph", {}, rf'\{{\s*"entities": \[\s*{shown}\s*\],\s*"relations": \[\]\s*\}}'),
                  ("!add_observations", {"observations": [{"entityName": "Bob", "contents": ["x"]}]},
                   "Entity with name Bob not found"))

    def test_sequential_thinking(self):
        thought = {"thought": "why", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False}
        self.uses(mcp_proxy("node", npm("@modelcontextprotocol/server-sequential-thinking")),
                  ("sequentialthinking", thought, r'\{\s*"thoughtNumber": 1,.*"thoughtHistoryLength": 1\s*\}'))

    def test_time(self):
        noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        self.uses(mcp_proxy(pypi(2, "mcp-server-time"), "--local-timezone", "UTC"),
                  ("convert_time", noon, r'\{.*T21:00:00\+09:00.*"time_difference": "\+9.0h"\s*\}'),
                  ("!get_current_time", {"timezone": "Mars/Base"}, ".*Invalid timezone: .*Mars/Base'"))

    def test_git(self):
        here = str(self.root)  # the user of the test owns it
        commit = "git -c user.name=Ada -c user.email=ada@example.org commit -qm 'first words'"
        script = f"echo a > a && git init -q && git add a && {commit} && echo b > a"
        subprocess.run(script, shell=True, check=True, cwd=here, capture_output=True)
        self.uses(mcp_proxy(pypi(2, "mcp-server-git"), "--repository", here),
                  ("git_log", {"repo_path": here}, r"Commit history:\nCommit: [0-9a-f]{40}\n.*Message: first words\s*"),
                  ("git_diff_unstaged", {"repo_path": here}, r".*\n-a\n\+b\n?"),
                  ("!git_show", {"repo_path": here, "revision": "none"}, ".*Ref 'none' did not resolve to an object"))

    def test_fetch(self):
        self.put("page", "<p>words</p>")
        port, here = free_port(), self.workspace
        address = f"http://127.0.0.1:{port}"
        with listening(port, sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "-d", here, port):
            self.uses(mcp_proxy(pypi(2, "mcp-server-fetch"), "--ignore-robots-txt", "--allow-private-ips"),
                      ("fetch", {"url": f"{address}/page", "raw": True}, r".*Contents of \S+/page:\n<p>words</p>"),
                      ("!fetch", {"url": f"{address}/none"}, ".*Failed to fetch .*status code 404"))

    def test_sqlite(self):
        self.uses(mcp_proxy(pypi(1, "mcp-server-sqlite"), "--db-path", self.root / "data"),
                  ("create_table", {"query": "CREATE TABLE t (a TEXT)"}, "Table created successfully"),
                  ("write_query", {"query": "INSERT INTO t VALUES ('ü')"}, r"\[\{'affected_rows': 1\}\]"),
                  ("read_query", {"query": "SELECT * FROM t"}, r"\[\{'a': 'ü'\}\]"),
                  ("read_query", {"query": "DELETE FROM t"}, "Error: Only SELECT queries .*"))  # no error in MCP

    def test_excel(self):
        program, book = pypi(2, "excel-mcp-server"), {"path": "a.xlsx", "sheet": "Sheet1"}
        self.uses(lambda port: [program, "streamable-http", "--port", port, "--allow-dir", self.workspace,
                               "--tools", "workbooks,data"],
                  ("create_workbook", {"path": "a.xlsx"}, r'\{"path":"a.xlsx"\}'),
                  ("write_range", {**book, "at": "A1", "rows": [["a", 40], ["b", 2]]}, r"\{.*\}"),
                  ("read_range", book, r'\{.*\[\["a",40\],\["b",2\]\].*\}'),
                  ("!read_range", {"path": "none.xlsx", "sheet": "x"}, ".*none.xlsx.*"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
