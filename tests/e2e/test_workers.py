# SPDX-License-Identifier: Apache-2.0
"""Agents of others as steps: the jobs of examples/workers with the programs from npm and PyPI, and a scripted model.

They run as the ordinary user, each with a home of its own, in a network that has nothing but the scripted model. That,
and that their programs are in root's cache, is why only root can try them."""
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import socket
import struct
import threading
import unittest

import sba
import packages
import secret_case
from servers import workers

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "workers"
KEY = "sk-worker-Zq83Lm0pWx7rTgB4hy2KvN6c"
MEND, LOOK = "sed -i s/helo/hello/ greeting.c", "make test; printenv | grep API_KEY | cut -d= -f2; true"
SUBMIT = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{workers.DONE}'"  # how mini-swe-agent ends
EDIT = workers.DONE + '''

greeting.c
```
<<<<<<< SEARCH
    puts("helo");
=======
    puts("hello");
>>>>>>> REPLACE
```
'''
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1


def in_its_own_network(make):
    """What make() gives in a network that has only a loopback, and its descriptor. A thread can be in its own."""
    made = []

    def inside():
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0:
            with socket.socket() as any_socket:
                fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
            made.extend((make(), os.open("/proc/thread-self/ns/net", os.O_RDONLY)))
    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    return made


def opened(directory, aside):
    """Commands for a mount namespace in which all may enter the directory: what is closed above it goes aside."""
    closed = next((parent for parent in reversed(directory.parents) if not parent.stat().st_mode & 1), None)
    if not closed:
        return ""
    aside = f"{aside}/{closed.name}"
    return f"""
        [ -d {aside} ] || {{ mkdir {aside}; mount --bind {closed} {aside}; mount -t tmpfs -o mode=755 none {closed}; }}
        mkdir -p {directory}; mount --bind {aside}/{directory.relative_to(closed)} {directory}"""


@unittest.skipUnless(sba.UID and sba.may("unshare", "--mount", "--net", "true"), "only root can make a network")
@unittest.skipUnless(shutil.which("jq") and shutil.which("make") and shutil.which("cc"), "wants jq, make and cc")
class WorkerCase(sba.SandboxCase):
    """fetch() gives the directories of the programs."""

    @classmethod
    def setUpClass(cls):
        cls.programs = cls.fetch()

    def setUp(self):
        super().setUp()
        for file in (EXAMPLES / "workspace").iterdir():
            self.put(file.name, file.read_bytes())
        self.home = self.folder(self.root / "home")

    def example(self, name):
        return json.loads((EXAMPLES / f"{name}.json").read_text())

    def serve(self, make):
        """What make() gives, and options of run_job() with which a job has it in its network."""
        server, network = in_its_own_network(make)
        self.addCleanup(os.close, network)
        directories = [programs.parent for programs in self.programs]
        interpreters = [programs / "python3" for programs in self.programs if (programs / "python3").exists()]
        directories += [interpreter.resolve().parents[1] for interpreter in interpreters]
        namespace = self.in_namespace("".join(opened(directory, self.root) for directory in directories))
        wrapper = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{network}", *namespace["wrapper"]]
        return server, {**namespace, "wrapper": wrapper, "timeout": 900}

    def environment_with(self, *keys):
        node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
        path = [*map(str, self.programs), f"{EXAMPLES}/bin", node, "/usr/local/bin", "/usr/bin", "/bin"]
        secrets = {**dict.fromkeys(keys, KEY), "SBA_SECRETS": ",".join(keys)}
        return {"PATH": ":".join(path), "HOME": str(self.home), **secrets}

    def assert_no_key(self, outcome):
        page = sba.run("--report", str(self.result_path)).stdout
        self.assertIn(b"<html", page)
        left = {"stdout": outcome.stdout, "log": outcome.stderr, "page": page}
        left.update({path: path.read_bytes() for path in self.job_directory.rglob("*") if path.is_file()})
        self.assertEqual([], [name for name, data in left.items() if secret_case.leaks(data, KEY)])


class Worker:
    """What holds for each. refused: how its step ends where the model refuses to go on."""
    key, server_variable, path = "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"
    commands, edit, refused = [MEND, LOOK], None, "failure"

    def of_server(self, _url, _own):
        """What the arguments of the step are told of the model's server besides the variable."""
        return {}

    def work(self, fault=None, **arguments):
        """The outcome of the job with a model that says what to do and then shows the fault, and the server."""
        commands = [command for command in self.commands if not fault or command != SUBMIT]
        server, options = self.serve(lambda: workers.Server(commands, self.edit, fault))
        self.closing(server)
        job = self.example(self.name)
        own = job["steps"][0]["arguments"]
        url = server.url + self.path
        own.update(arguments, env={**own.get("env", {}), self.server_variable: url}, **self.of_server(url, own))
        return self.run_job(job, env=self.environment_with(self.key), **options), server

    def assert_mended(self, outcome):
        self.assertEqual(outcome.code, None, outcome.result)
        self.assertIn("hello", self.text("greeting.c"))
        self.assertEqual([(one["met"], one["verified_by"]) for one in outcome.acceptance], [(True, "check")])
        changed = {file["path"] for file in outcome.result["workspace_changes"]["files"]}
        self.assertLessEqual(changed, {"greeting.c", "greeting"})  # the second is what make test makes
        patch = (self.job_directory / "artifacts" / "changes.patch").read_text()
        self.assertIn('-    puts("helo");\n+    puts("hello");\n', patch)

    def mended(self):
        """The outcome of the job with a model that does what it should, what it says to have used, and the server."""
        outcome, server = self.work()
        self.assert_mended(outcome)
        self.assertEqual(outcome.statuses[0], "success", outcome.result)
        self.assertIn(KEY, str([request["headers"] for request in server.requests]))
        self.assert_no_key(outcome)
        inference = outcome.result["inference"]
        self.assertIn(workers.DONE, outcome.answer)
        self.assertEqual((inference["source"], outcome.result["inference_used"]), ("worker", False))
        return outcome, inference, server

    def test_it_mends_the_program_and_reports(self):
        _, inference, server = self.mended()
        turns = len([request for request in server.requests if request["method"] == "POST"])
        self.assertGreaterEqual(inference["prompt_tokens"], workers.PROMPT_TOKENS if self.commands else 1)
        self.assertLessEqual(inference["completion_tokens"], 2 * turns * workers.COMPLETION_TOKENS)

    def test_one_that_hangs_is_ended(self):
        outcome, _ = self.work("silence", idle_timeout_seconds=min(150, round(45 * sba.slowness())))  # some begin late
        step = outcome.steps[0]
        self.assertEqual((step["status"], step["error_code"]), ("timeout", "idle_timeout"), outcome.result)
        self.assertNotEqual(step["output"], "")
        self.assert_no_key(outcome)
        if self.commands:
            self.assert_mended(outcome)

    def test_its_exit_status_does_not_decide(self):
        outcome, _ = self.work("unauthorized")
        self.assert_no_key(outcome)
        if self.commands:
            self.assert_mended(outcome)
            self.assertEqual(outcome.statuses[0], self.refused, outcome.result)



class Codex(Worker, WorkerCase):
    """OpenAI's responses."""
    name, key = "codex", "CODEX_API_KEY"

    @staticmethod
    def fetch():
        return [packages.node_modules("codex-0.171.0", "@openai/codex@0.171.0") / ".bin"]


class Claude(Worker, WorkerCase):
    """Anthropic's messages."""
    name, key, server_variable, path = "claude", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""

    @staticmethod
    def fetch():
        return [packages.node_modules("claude-2.1.332", "@anthropic-ai/claude-code@2.1.332") / ".bin"]


class OpenCode(Worker, WorkerCase):
    """Chat completions, as a stream."""
    name = "opencode"

    @staticmethod
    def fetch():
        return [packages.node_modules("opencode-1.18.33", "opencode-ai@1.18.33") / ".bin"]


class ByProtocol(Worker):
    """Agents that speak the Agent Client Protocol: what they say and do is seen. Some do not say what it took."""
    says_tokens = False

    def test_it_mends_the_program_and_reports(self):
        outcome, inference, _ = self.mended()
        result = outcome.steps[0]["result"]
        self.assertEqual((result["stop_reason"], result["tool_calls"]), ("end_turn", len(self.commands)), outcome.steps)
        if self.says_tokens:
            self.assertGreaterEqual(inference["prompt_tokens"], workers.PROMPT_TOKENS)


class OpenCodeByProtocol(ByProtocol, WorkerCase):
    name, says_tokens = "opencode-acp", True
    fetch = OpenCode.fetch


class CodexByProtocol(ByProtocol, WorkerCase):
    name, key = "codex-acp", "CODEX_API_KEY"

    @staticmethod
    def fetch():
        return [packages.node_modules("codex-acp-0.16.0", "@zed-industries/codex-acp@0.16.0") / ".bin"]

    def of_server(self, url, own):
        """Its built-in provider has its own address, and tries WebSockets first."""
        provider = f'model_providers.s={{name="s",base_url="{url}",wire_api="responses",env_key="{self.key}"}}'
        return {"argv": [*own["argv"], "-c", provider, "-c", 'model_provider="s"']}


class ClaudeByProtocol(ByProtocol, WorkerCase):
    """It leaves its commands to the client's terminals."""
    name, key, server_variable, path = "claude-acp", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""

    @staticmethod
    def fetch():
        return [packages.node_modules("claude-acp-0.16.2", "@zed-industries/claude-code-acp@0.16.2") / ".bin"]


class MiniSweAgent(Worker, WorkerCase):
    """Chat completions, whole."""
    name, commands = "mini-swe-agent", [MEND, LOOK, SUBMIT]

    @staticmethod
    def fetch():
        return [packages.environment("mini-swe-agent-2.4.6", "mini-swe-agent==2.4.6")]


class Aider(Worker, WorkerCase):
    """Chat completions without tools: edits are read out of the text."""
    name, commands, edit = "aider", [], EDIT

    @staticmethod
    def fetch():
        return [packages.environment("aider-0.86.2", "aider-chat==0.86.2", oldest=(3, 10))]


class Compare(WorkerCase):
    """Three on one task, one of which is refused."""
    fetch = staticmethod(lambda: [*Codex.fetch(), *Claude.fetch(), *MiniSweAgent.fetch()])

    def test_who_did_it_is_in_the_result(self):
        (good, bad), options = self.serve(
            lambda: [workers.Server([MEND, LOOK, SUBMIT]), workers.Server([], None, "unauthorized")])
        self.closing(good)
        self.closing(bad)
        job = self.example("compare")
        for step in job["steps"][1:4]:
            server = bad.url if step["id"] == "claude" else good.url + "/v1"
            step["arguments"]["env"] = {"OPENAI_BASE_URL": server, "ANTHROPIC_BASE_URL": server}
        variables = self.environment_with("CODEX_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY")
        outcome = self.run_job(job, env=variables, **options)
        self.assertEqual(outcome.code, "acceptance_unmet", outcome.result)
        self.assertEqual(outcome.statuses[:5], ["success", "success", "failure", "success", "success"])
        self.assertEqual([one["met"] for one in outcome.acceptance], [True, False, True])
        self.assertEqual([step["result"]["report"]["model"] for step in outcome.steps[1:4]],
                         ["gpt-5.2-codex", "claude-sonnet-4-5", "openai/gpt-5.2"])
        patches = {name: (self.job_directory / "artifacts" / f"{name}.patch").read_text()
                   for name in ("codex", "claude", "mini-swe-agent")}
        self.assertEqual(patches["claude"], "")
        self.assertIn("--- original/greeting.c", patches["codex"])
        self.assertIn('+    puts("hello");', patches["mini-swe-agent"])
        self.assertIn('puts("helo")', self.text("greeting.c"))
        self.assert_no_key(outcome)


sba.main(__name__)
