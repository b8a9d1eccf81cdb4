# SPDX-License-Identifier: Apache-2.0
"""servers.py BINARY CACHE: the MCP client against servers as people run them, pinned, from PyPI and npm.

CACHE holds node_modules (see run) and gets a virtual environment for each Python package. Exits 77 if the registry cannot be reached.
"""
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).parent
DRIVER = HERE.parent / "e2e" / "gateway.lua"
BINARY, CACHE = sys.argv[1], pathlib.Path(sys.argv[2])
PACKAGES = {  # by the environment's name
    "sdk-1.6": ["mcp==1.6.0", "pydantic==2.11.10"],  # speaks 2024-11-05
    "sdk-1.30": ["mcp==1.30.0"],
    "sdk-2.3": ["mcp==2.3.0"],
    "fastmcp-4.1": ["fastmcp==4.1.2"],
}
REACHABLE, LISTENING = 30, 60  # seconds


def fetch():
    missing = [name for name in PACKAGES if not (CACHE / name / "complete").exists()]
    for name in missing:
        subprocess.run([sys.executable, "-m", "venv", CACHE / name], check=True)
        pip = [CACHE / name / "bin" / "pip", "--quiet"]
        if name == missing[0] and not is_reachable(pip, PACKAGES[name][0]):
            print("conformance: PyPI cannot be reached")
            sys.exit(77)
        print(f"== Fetching {' '.join(PACKAGES[name])} into {CACHE / name}", flush=True)
        subprocess.run([*pip, "install", *PACKAGES[name]], check=True)
        (CACHE / name / "complete").touch()


def is_reachable(pip, package):
    command = [*pip, "--retries", "0", "download", "--no-deps", "--dest", CACHE / "reachable", package]
    try:
        return subprocess.run(command, timeout=REACHABLE, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def listening(port, *command):
    """Runs a server until the block ends."""
    process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + LISTENING
        while not listens(port):
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise RuntimeError(process.communicate()[0].decode())
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


class Servers(unittest.TestCase):
    def talk(self, url, *calls, **limits):
        options = {"environment": {"SBA_MCP_GATEWAY_URL": url}, "job_id": "job-1", "task_id": "task-1", "ext_net_allowed": False,
                   "limits": limits or {"idle": 30}}
        plan = [{"name": name, "arguments": arguments} for name, arguments in calls]
        done = subprocess.run([BINARY, "--lua", DRIVER, json.dumps(options), json.dumps(plan)], capture_output=True, timeout=120)
        self.assertEqual(done.stderr, b"")
        first, *said = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertNotIn("failure", first)
        return first, said

    def python(self, name):
        port = free_port()
        return listening(port, CACHE / name / "bin" / "python", HERE / "server.py", "http", port)

    def used(self, url, era):
        """Calls what each of the Python servers has."""
        first, said = self.talk(url, ("echo", {"message": "grüße"}), ("rows", {}), ("nothing", {}))
        self.assertEqual((first["era"], first["instructions"]), (era, "Call echo."))
        self.assertEqual(said[0]["answer"]["content"], "grüße")
        self.assertNotIn("structured", said[0]["answer"])
        self.assertEqual(json.loads(said[1]["answer"]["content"]), {"a": 1, "b": [1, 2]})
        self.assertEqual(said[2]["failure"]["code"], "unknown_tool")

    def test_python_sdk_2(self):
        with self.python("sdk-2.3") as url:
            self.used(url, "modern")
            self.assertEqual(self.talk(url, ("slow", {}), idle=2)[1][0]["answer"]["content"], "slept")
            self.assertIn("refused", self.talk(url, ("ask", {}))[1][0]["answer"]["content"])

    def test_python_sdk_1(self):
        with self.python("sdk-1.30") as url:
            self.used(url, "legacy")
            self.assertEqual(self.talk(url, ("slow", {}), idle=2)[1][0]["answer"]["content"], "slept")
            # It asks on a stream that is not open, and waits.
            self.assertEqual(self.talk(url, ("ask", {}), whole=2)[1][0]["failure"]["code"], "slow_answer")

    def test_fastmcp(self):
        with self.python("fastmcp-4.1") as url:
            self.used(url, "modern")
            self.assertEqual(self.talk(url, ("slow", {}), idle=2)[1][0]["answer"]["content"], "slept")

    def supergateway(self, child, *more):
        port, script = free_port(), CACHE / "node_modules" / "supergateway" / "dist" / "index.js"
        return listening(port, "node", script, "--stdio", child, "--outputTransport", "streamableHttp", "--port", port, *more)

    def test_supergateway_with_revision_2024_11_05(self):
        child = f"{CACHE / 'sdk-1.6' / 'bin' / 'python'} {HERE / 'server.py'} stdio"
        for more in ((), ("--stateful",)):
            with self.supergateway(child, *more) as url:
                first, said = self.talk(url, ("echo", {"message": "grüße"}))
                self.assertEqual((first["era"], said[0]["answer"]["content"]), ("legacy", "grüße"))
                self.assertEqual(first["version"], "2024-11-05")

    def test_supergateway_with_server_everything(self):
        child = f"node {CACHE / 'node_modules' / '@modelcontextprotocol' / 'server-everything' / 'dist' / 'index.js'} stdio"
        with self.supergateway(child) as url:
            _, said = self.talk(url, ("echo", {"message": "grüße"}), ("get-sum", {"a": 2, "b": 40}))
            self.assertEqual(said[0]["answer"]["content"], "Echo: grüße")
            self.assertIn("42", said[1]["answer"]["content"])


if __name__ == "__main__":
    fetch()
    unittest.main(argv=[sys.argv[0], "-v"])
