# SPDX-License-Identifier: Apache-2.0
"""real_servers.py BINARY NODE_MODULES: the MCP client against servers as people run them, pinned, from PyPI, npm and
Go's proxy. A server that cannot be had is skipped, with the reason.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import packages  # noqa: E402
from servers import nginx  # noqa: E402
from servers.real import free_port, listens  # noqa: E402

DRIVER = HERE.parent / "e2e" / "gateway.lua"
BINARY, NODE_MODULES = sys.argv[1:]
PACKAGES = {  # by the environment's name
    "sdk-1.30": ["mcp==1.30.0"],
    "sdk-2.3": ["mcp==2.3.0"],
}
GO_MODULES = ["github.com/modelcontextprotocol/go-sdk@v1.8.0"]
EVERYTHING = f"{NODE_MODULES}/@modelcontextprotocol/server-everything/dist/index.js"  # the reference server
LISTENING = 60  # seconds


def python_of(name):
    return packages.environment(f"mcp-{name}", *PACKAGES[name], oldest=(3, 10))


@contextlib.contextmanager
def listening(port, *command, env=None):
    """Runs a server until the block ends, and ends what it has started too."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env=env, start_new_session=True)
        try:
            end = time.monotonic() + LISTENING
            while not listens(port):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise RuntimeError(log.read().decode())
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Servers(unittest.TestCase):
    def talk(self, url, *calls, **limits):
        options = {"environment": {"SBA_MCP_GATEWAY_URL": url}, "job_id": "job-1", "task_id": "task-1",
                   "ext_net_allowed": False, "limits": limits or {"idle": 30}}
        plan = [{"name": name, "arguments": arguments} for name, arguments in calls]
        done = subprocess.run([BINARY, "--lua", DRIVER, json.dumps(options), json.dumps(plan)],
                              capture_output=True, timeout=120)
        self.assertEqual(done.stderr, b"")
        first, *said = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertNotIn("failure", first)
        return first, said

    def python(self, name):
        port = free_port()
        return listening(port, python_of(name) / "python", HERE / "server.py", port)

    def used(self, url, era):
        first, said = self.talk(url, ("echo", {"message": "grüße"}), ("rows", {}), ("nothing", {}))
        self.assertEqual((first["era"], first["instructions"]), (era, "Call echo."))
        self.assertEqual(said[0]["answer"]["content"], "grüße")
        self.assertNotIn("structured", said[0]["answer"])
        self.assertEqual(json.loads(said[1]["answer"]["content"]), {"a": 1, "b": [1, 2]})
        self.assertEqual(said[2]["failure"]["code"], "unknown_tool")
        self.assertEqual(self.talk(url, ("slow", {}), idle=2)[1][0]["answer"]["content"], "slept")

    def test_python_sdk_2(self):
        with self.python("sdk-2.3") as url:
            self.used(url, "modern")
            self.assertIn("refused", self.talk(url, ("ask", {}))[1][0]["answer"]["content"])

    def test_python_sdk_1(self):
        with self.python("sdk-1.30") as url:
            self.used(url, "legacy")
            # It asks on the standalone stream, and waits.
            self.assertIn("refused", self.talk(url, ("ask", {}))[1][0]["answer"]["content"])

    @unittest.skipUnless(nginx.is_there(), "nginx is not installed")
    def test_an_idle_limit_on_the_way(self):
        """The server reports progress, for the call asks for it; nginx ends an answer that says nothing for so long."""
        with self.python("sdk-1.30") as url:
            locations = {"/mcp": f"proxy_pass {url}; proxy_read_timeout 1s;"}
            between = nginx.Nginx({"listen": "http", "locations": locations})
            with contextlib.closing(between):
                self.assertEqual(self.talk(between.urls[0] + "/mcp", ("slow", {}))[1][0]["answer"]["content"], "slept")

    def test_go_sdk(self):
        port = free_port()
        with listening(port, packages.go_program("mcp-go", HERE / "server.go", *GO_MODULES), port) as url:
            self.used(url, "legacy")
            self.assertIn("refused", self.talk(url, ("ask", {}))[1][0]["answer"]["content"])

    @unittest.skipUnless(NODE_MODULES, "npm's packages cannot be had")
    def test_the_reference_server(self):
        port = free_port()
        with listening(port, "node", EVERYTHING, "streamableHttp", env={**os.environ, "PORT": str(port)}) as url:
            first, said = self.talk(url, ("get-sum", {"a": 2, "b": 40}), ("get-tiny-image", {}),
                                    ("get-structured-content", {"location": "Chicago"}),
                                    ("trigger-long-running-operation", {"duration": 1, "steps": 4}),
                                    ("get-sum", {"a": "two"}),
                                    *(("echo", {"message": str(number)}) for number in range(100)))
            self.assertGreater(len(first["tools"]), 5)
            total, image, structured, long, wrong, *echoed = said
            self.assertIn("42", total["answer"]["content"])
            self.assertRegex(image["answer"]["content"], r"\[image, image/png, \d+ bytes\]")
            self.assertIn("temperature", json.loads(structured["answer"]["content"]))
            self.assertNotIn("structured", structured["answer"])
            self.assertIn("completed", long["answer"]["content"])
            self.assertTrue("failure" in wrong or wrong["answer"]["is_error"])
            self.assertEqual([one["answer"]["content"] for one in echoed], [f"Echo: {number}" for number in range(100)])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
