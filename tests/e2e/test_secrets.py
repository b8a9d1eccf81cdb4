# SPDX-License-Identifier: Apache-2.0
"""The token and the passwords in URLs: whatever a command, a server or a file says of them, no sink of the runner holds
them, and the runner's own keys, enumerations and ids stay as they are.

The secret lies in the workspace, as if it had leaked. Then every byte of every sink is searched for it, by means that
share nothing with the runner's own.
"""
import base64
import contextlib
import json
import os
import pathlib
import re
import signal
import urllib.parse

import leak
import sba
from agent_case import call, calls, finish, runs
from secret_case import HERE, PYTHON, TOKEN, WAYS, SecretCase, leaks
from servers import mcp, status


class TheSearch(sba.unittest.TestCase):
    def test_finds_the_secret_in_all_encodings(self):
        for secret in (TOKEN, "p\u00e4ss/w\u00f6rd"):
            for way, chunks in leak.ways(secret).items():
                text = b"".join(chunk for _, chunk in chunks)
                if way != "environment":
                    self.assertTrue(leaks(json.dumps({"stdout": text.decode()}).encode(), secret), way)
        self.assertFalse(leaks(b"sba-Zq83 ordinary text, [redacted] and c2JhLVpxODM"))


class Commands(SecretCase):
    def test_no_way_to_print_it_gets_through(self):
        outcome = self.run_secret(self.job(*[self.leak(way) for way in WAYS]))
        self.assertEqual((outcome.exit, len(outcome.steps)), (0, len(WAYS)), outcome.message)
        self.assert_clean(outcome)
        for way, step in zip(WAYS, outcome.steps):
            self.assertIn("[redacted]", step["output"], way)

    def test_at_the_cut_of_the_output(self):
        for form in ("raw", "percent", "unicode", "base64", "base64_1"):
            text = leak.ways(TOKEN)[form][0][1]
            for left in range(1, len(text), max(1, len(text) // 6)):
                self.put("text", b"x" * 50 + text)
                for step in (self.run_command("cat", args=["text"]), self.read_file("text")):
                    outcome = self.run_secret(self.job(step, max_output_bytes=50 + left))
                    self.assertEqual(outcome.code, "constraint_violation")
                    self.assert_clean(outcome)

    def test_file_steps(self):
        name = TOKEN.replace("/", "-")
        secret_name = "sba-" + "y" * 30
        self.put(f"directory/{secret_name}", "text")
        self.put("long", "x" * 490 + TOKEN + "x" * 500 + "\n" + "y" * 300 + TOKEN + "z" * 300)
        self.put("binary", b"\xff\xfe" + TOKEN.encode())
        diff = f"--- a/loot\n+++ b/loot\n@@ -1 +1 @@\n-{'p' * 60}{TOKEN} other\n+x\n"
        job = self.job(
            self.step("list_tree", path="."), self.step("search_files", pattern="sba-Z|zz"), self.read_file("loot"),
            self.read_file("binary"), self.step("search_files", pattern="ppp|y{100}"),
            self.write_file(f"out/{secret_name}", TOKEN), self.apply_diff(diff),
            context={"requirements": [f"use {TOKEN}"]})
        outcome = self.run_secret(job, env={"HTTP_PROXY": f"http://{secret_name}:{name}@127.0.0.1:9"})
        self.assertEqual(outcome.code, "step_failed")
        self.assert_clean(outcome)
        self.assert_clean(outcome, name)
        self.assertIn("does not fit", outcome.message)
        self.assertEqual(self.text(f"out/{secret_name}"), TOKEN)  # a workspace is no sink

    def test_artifacts_and_file_names(self):
        secret = "sba-Zq83.Lm.0pWx_7rTgB"
        self.put("loot", secret)
        script = ('d="$CYNODE_ARTIFACTS_DIR/$(cat loot)"; mkdir "$d"; touch "$d/a" "$(cat loot).txt"; '
                  'cat "$(cat loot)" || true')
        outcome = self.assert_end(self.run_steps(self.sh(script), self.step("list_tree", path="."),
                                                 env={"SBA_MCP_TOKEN": secret}), 0)
        self.assert_clean(outcome, secret)
        self.assertEqual([artifact["path"] for artifact in outcome.result["artifacts"]], ["[redacted]/a"])

    def test_ordinary_text_is_untouched(self):
        text = (HERE / "test_secrets.py").read_text().replace(TOKEN, "").encode()
        self.put("text", text + bytes(range(256)) + b"sba-Zq8 %73%62 \\u0073 c2Jh")
        steps = [self.run_command("cat", args=["text"]), self.read_file("text"), self.step("search_files", pattern="e")]
        with_secret, without = self.run_secret(self.job(*steps)), self.run_steps(*steps)
        for one, other in zip(with_secret.steps, without.steps):
            for field in ("stdout", "content", "encoding", "sha256", "matches"):
                self.assertEqual(one["result"].get(field), other["result"].get(field))
            self.assertEqual(one.get("output"), other.get("output"))


class Sinks(SecretCase):
    def test_result_on_stdout_and_on_stderr(self):
        outcome = self.run_secret(self.job(self.leak("raw"), self.run_command(TOKEN)), "--result", "-")
        self.assertIn(b"[redacted]", outcome.stdout)
        self.assert_clean(outcome)
        with open("/dev/full", "w") as full:
            outcome = self.run_secret(self.job(self.leak("raw")), "--result", "-", stdout=full)
        outcome.stdout = b""
        self.assertIn(b"[redacted]", outcome.stderr)
        self.assert_clean(outcome)
        path = self.root / "job" / urllib.parse.quote(TOKEN, safe="") / "result.json"
        path.parent.mkdir()
        path.parent.chmod(0o555)
        outcome = self.run_secret(self.job(self.leak("raw")), "--result", str(path))
        self.assertEqual(outcome.exit, 3)
        self.assertIn(b"[redacted]/result.json", outcome.stderr)
        self.assert_clean(outcome)

    def test_a_report_as_html(self):
        outcome = self.run_secret(self.job(self.sh(f"echo {TOKEN}"), self.write_file("a", TOKEN + "\n"),
                                           self.apply_diff(f"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-{TOKEN}\n+{TOKEN * 2}\n")))
        self.assert_end(outcome, 0)
        for path, code in ((self.result_path, 0), ("/" + TOKEN, 2)):
            done = sba.run("--report", path, env={"SBA_MCP_TOKEN": TOKEN})
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(b"[redacted]", done.stdout + done.stderr)
            self.assertFalse(leaks(done.stdout + done.stderr))

    def test_mistakes_of_a_job_and_of_the_command_line(self):
        job = self.job(self.step("run_command", **{TOKEN: 1}), **{f"x{TOKEN}": TOKEN})
        outcome = self.run_secret(job)
        self.assertEqual(outcome.exit, 2)
        self.assert_clean(outcome)
        self.assertIn("[redacted]", outcome.message)
        path = str(self.job_directory / "job.json")
        for arguments in (["--validate", path], ["--validate", "/" + TOKEN], ["--" + TOKEN], ["a", TOKEN],
                          ["--log-format", TOKEN]):
            done = sba.run(*arguments, env={"SBA_MCP_TOKEN": TOKEN})
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"[redacted]", done.stdout + done.stderr, arguments)
            self.assertFalse(leaks(done.stdout + done.stderr), arguments)

    def test_a_job_that_is_killed_and_resumed(self):
        self.fifo()
        job = self.job(self.leak("raw"), self.sh("echo $$ > turn; exec cat turn"), self.leak("two_writes"))
        process = self.start(job, env={"SBA_MCP_TOKEN": TOKEN})
        with open(self.workspace / "turn") as turn:
            command = int(turn.readline())
        process.send_signal(signal.SIGKILL)
        outcome = self.outcome_of(process)
        self.assertEqual(outcome.code, "interrupted")
        self.assert_clean(outcome)
        with contextlib.suppress(ProcessLookupError):
            os.kill(command, signal.SIGKILL)
        (self.workspace / "turn").unlink()
        self.put("turn", "")
        outcome = self.run_secret(job, "--resume")
        self.assertEqual((outcome.exit, len(outcome.steps)), (0, 3), outcome.result)
        self.assert_clean(outcome)


class TheAgent(SecretCase):
    def replies(self):
        return [
            {"content": "", "thinking": f"I know {TOKEN}", "tool_calls": [
                {"name": "run_command", "arguments": {"argv": [PYTHON, "leak.py", way]}} for way in WAYS]},
            calls(("read_output", {"step": "step-1", "offset_bytes": 0}),
                  ("run_command", {"shell": f"echo {TOKEN} | wc -c"}),
                  ("todo_add", {"title": f"hide {TOKEN}"}), ("leak", {"where": TOKEN}), ("nothing " + TOKEN, {}),
                  ("read_file", {"path": TOKEN}), ("write_file", {"path": "a", "content": TOKEN})),
            call("run_command", argv=[PYTHON, "leak.py", "at_cut"]),
            *[call("read_output", step=f"step-{4 + len(WAYS)}", offset_bytes=offset)
              for offset in (10000, 10010, 10020)],
            finish(f"It is {TOKEN}, or {base64.b64encode(TOKEN.encode()).decode()}."),
        ]

    def run_secret_agent(self, *more, replies=None, **options):
        job = self.agent_job(context={"task_context": f"The token is {TOKEN}"}, max_output_bytes=1 << 20)
        model = self.server(*(self.replies() if replies is None else replies),
                            models={"m": {"capabilities": ["completion", "tools"], "context_length": 262144}})
        schema = {"properties": {"where": {"description": f"not {TOKEN}", "enum": [TOKEN]}, "n": {"default": TOKEN}}}
        gateway = self.closing(mcp.Server(tools={"leak": ({"inputSchema": schema}, lambda exchange: mcp.text(
            f"{TOKEN} {json.dumps(TOKEN)}", structuredContent={TOKEN: [TOKEN]}))}))
        reports = self.status_server()
        outcome = self.run_agent(model, *more, job=job, env={
            "SBA_MCP_TOKEN": TOKEN, "SBA_MCP_GATEWAY_URL": gateway.url, "SBA_JOB_STATUS_URL": reports.url}, **options)
        sent = [json.dumps(request).encode() for request in model.requests] + reports.received
        sent += [json.dumps(message).encode() for _, _, _, message in gateway.requests]
        return outcome, model, gateway, sent

    def test_neither_model_nor_journal_nor_outputs_get_it(self):
        outcome, model, gateway, sent = self.run_secret_agent()
        self.assert_end(outcome, 0)
        self.assertEqual(len([data for data in sent if re.search(b'"status": ?"completed"', data)]), 1)
        self.assert_clean(outcome, servers=sent)
        self.assertRegex(outcome.answer, r"^It is \[redacted\], or \[redacted\].==\.$")
        self.assertEqual(self.text("a"), "[redacted]")  # what was done is what was recorded
        self.assertTrue((self.job_directory / "outputs").is_dir())
        self.assertEqual({sent.get("Authorization") for sent in gateway.headers("tools/call")}, {f"Bearer {TOKEN}"})
        self.assertEqual([m["params"]["arguments"]["where"] for m in gateway.messages("tools/call")], ["[redacted]"])

    def test_answers_of_a_gateways_tool_that_fails(self):
        said = mcp.text(f"no {TOKEN}", structuredContent={"why": TOKEN}, isError=True)
        gateway = self.gateway(leak=lambda exchange: said)
        outcome = self.run_steps(self.step("call_tool", tool="leak", arguments={}),
                                 env={"SBA_MCP_TOKEN": TOKEN, "SBA_MCP_GATEWAY_URL": gateway.url})
        self.assert_end(outcome, 1, "step_failed")
        self.assertEqual(outcome.steps[0]["result"]["content"], "no [redacted]")
        self.assertEqual(outcome.steps[0]["result"]["structured"], {"why": "[redacted]"})
        self.assert_clean(outcome)

    def test_a_replay_of_it_is_exact(self):
        replies = [self.replies()[0], call("run_command", shell=f"echo {TOKEN}"), finish(f"{TOKEN}!")]
        outcome, *_ = self.run_secret_agent(replies=replies)
        self.assert_end(outcome, 0)
        again, model, _, _ = self.run_secret_agent("--replay", self.recording(), replies=[])
        self.assert_answer(again, "[redacted]!")
        self.assertEqual(model.requests, [])
        self.assert_clean(again)

    def test_errors_of_a_model_server(self):
        for body in (TOKEN, "x" * 290 + TOKEN, "x" * 80 + TOKEN, json.dumps({"error": {"message": "y" * 285 + TOKEN}})):
            for code in (200, 401):
                fault = {"name": "status", "status": code, "body": body}
                server = self.server({"content": "x", "fault": fault}, probe_fault=fault)
                outcome = self.run_agent(server, env={"SBA_MCP_TOKEN": TOKEN})
                self.assertEqual(outcome.code, "inference_unavailable", body)
                self.assert_clean(outcome)


class Passwords(SecretCase):
    SECRET = "päss/w:rd+(x)"
    URLS = ["SBA_JOB_STATUS_URL", "SBA_CALLBACK_URL", "INFERENCE_PROXY_URL", "OLLAMA_BASE_URL", "SBA_API_EGRESS_URL",
            "OPENAI_BASE_URL", "SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_PROXY_URL", "MCP_GATEWAY_URL"]

    def proxy(self, user="alice", password=None):
        password = urllib.parse.quote(self.SECRET if password is None else password, safe="")
        return f"http://{user}:{password}@127.0.0.1:9"

    def test_of_proxies_are_for_commands_only(self):
        self.put("loot", self.SECRET)
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            job = self.job(self.sh(f'test "${name}" = "{self.proxy()}"'), self.leak("environment"),
                           *map(self.leak, ("raw", "basic", "url", "base64_2", "json", "unicode", "two_writes")))
            outcome = self.assert_end(self.run_job(job, env={name: self.proxy()}), 0)
            self.assert_clean(outcome, self.SECRET)
            self.assertIn(f"{name}=http://alice:[redacted]@127.0.0.1:9", outcome.steps[1]["output"].replace(
                "http://[redacted]@", "http://alice:[redacted]@"))

    def test_of_a_proxy_that_fails(self):
        env = {"HTTP_PROXY": self.proxy(), "OLLAMA_BASE_URL": "http://192.0.2.1:11434"}
        outcome = self.run_job(self.agent_job(max_runtime_seconds=4), env=env)
        self.assertEqual(outcome.code, "inference_unavailable")
        self.assertIn("127.0.0.1:9", outcome.message)
        self.assert_clean(outcome, self.SECRET)

    def test_of_proxies_that_make_no_sense(self):
        password = urllib.parse.quote(self.SECRET, safe="")
        for proxy in (f"alice:{password}@127.0.0.1:9", f"nonsense://alice:{password}@127.0.0.1:9",
                      f"http://alice:{password}@", f"http://alice:{password}@[::1",
                      f"socks5h://alice:{password}@127.0.0.1:9", f"http://alice:{password}@127.0.0.1:port",
                      f"http://{password}@127.0.0.1:9", f"http://alice:{password}@127.0.0.1:9/path?a=b@c",
                      f"http://al@ice:{password}@127.0.0.1:9", f" http://alice:{password}@127.0.0.1:9",
                      f"\n http://alice:{password}@127.0.0.1:9"):
            job = self.agent_job(max_runtime_seconds=1)  # it would try for longer
            outcome = self.run_job(job, env={"HTTP_PROXY": proxy, "OLLAMA_BASE_URL": "http://192.0.2.1:11434"})
            self.assertNotEqual(outcome.exit, 0, proxy)
            self.assert_clean(outcome, self.SECRET)

    def test_in_the_runners_own_urls(self):
        for name in self.URLS:
            outcome = self.run_job(self.agent_job(max_runtime_seconds=4), env={name: self.proxy() + "/v1"})
            self.assertEqual(outcome.exit, 75, name)
            self.assert_clean(outcome, self.SECRET)

    def test_in_the_runners_own_urls_reach_no_command(self):
        self.put("loot", self.SECRET)
        names = [*self.URLS, "ORCHESTRATOR_URL"]
        reports = self.status_server().url
        secret = self.proxy().replace("127.0.0.1:9", reports[7:])
        for url, passed in ((secret, 0), (" " + secret, 0), (reports, len(names))):
            # A file of the workspace is no sink: it shows what the command really had.
            script = "env > environment; cat /proc/$PPID/environ >> environment 2>&1; true"
            self.assert_end(self.run_steps(self.sh(script), env={name: url for name in names}), 0)
            lines = self.text("environment").splitlines()
            self.assertEqual(len([line for line in lines if line.split("=")[0] in names]), passed)
            self.assertFalse(leaks((self.workspace / "environment").read_bytes(), self.SECRET))

    def test_short_ones_are_masked_with_their_user_and_said(self):
        job = self.job(self.leak("environment"), self.sh("printf alice:p/1 | base64; printf %s $HTTP_PROXY | base64"))
        outcome = self.assert_end(self.run_job(job, env={"HTTP_PROXY": self.proxy(password="p/1")}), 0)
        self.assert_clean(outcome, "alice:p/1")
        self.assert_clean(outcome, "alice:p%2F1")
        warnings = [line["error"] for line in outcome.events("secret.warning")]
        self.assertEqual(len(warnings), 1)
        self.assertIn("HTTP_PROXY", warnings[0])


class OwnWords(SecretCase):
    """Keys, enumerations and ids of the runner stay, whatever the secrets are."""

    def shape(self, value):
        if isinstance(value, dict):
            return {name: self.shape(item) for name, item in value.items()}
        return [self.shape(item) for item in value] if isinstance(value, list) else type(value).__name__

    def sinks(self, job, env):
        reports = self.status_server()
        outcome = self.run_job(job, env={"SBA_JOB_STATUS_URL": reports.url, **env})
        todo = json.loads((self.job_directory / "todo.json").read_text())
        return outcome, [outcome.result, outcome.log, self.journal(), todo, reports.bodies]

    def test_with_secrets_that_are_words_of_ours(self):
        words = ("status", "success", "failure", "job_id", "directory", "run_command", "protocol_version", "modified",
                 "step-1")
        job = self.job(self.sh("echo one; echo two >&2"), self.step("list_tree"), self.write_file("a", "x\n"),
                       self.apply_diff("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"))
        expected, shapes = None, None
        for word in ("", *words):
            (self.workspace / "a").unlink(missing_ok=True)
            proxy = f"http://alice:{word}@127.0.0.1:9" if word else ""
            outcome, sinks = self.sinks(job, {"ALL_PROXY": proxy})
            self.assertEqual(outcome.exit, 0, word)
            result = outcome.result
            mine = [result["status"], result["job_id"], [(s["id"], s["type"], s["status"]) for s in result["steps"]],
                    result["steps"][1]["result"]["type"], result["steps"][3]["result"]["files"][0]["action"],
                    [line["event"] for line in outcome.log], [sent["status"] for sent in sinks[4]]]
            expected, shapes = expected or mine, shapes or self.shape(sinks)
            self.assertEqual(mine, expected, word)
            self.assertEqual(self.shape(sinks), shapes, word)

    def test_with_a_token_that_begins_with_the_ids(self):
        job = self.job(self.sh("cat loot; echo; echo $CYNODE_TASK_ID"), self.sh("exit 1"))
        job["task_id"] = "7f3c1b2a-0000-4000-8000-123456789abc"
        token = job["task_id"] + ".c2lnbmF0dXJl"
        self.put("loot", token)
        outcome, sinks = self.sinks(job, {"SBA_MCP_TOKEN": token, "CYNODE_TASK_ID": job["task_id"]})
        self.assertEqual(outcome.result["task_id"], job["task_id"])
        self.assertEqual(outcome.steps[0]["result"]["stdout"], f"[redacted]\n{job['task_id']}\n")
        self.assertEqual({sent["task_id"] for sent in sinks[4]}, {job["task_id"]})
        self.assertEqual({line["task_id"] for line in outcome.log[1:]}, {job["task_id"]})
        self.assertNotIn("c2lnbmF0dXJl", json.dumps(sinks))


class TheToken(SecretCase):
    def with_file(self, path, *steps, gateway=None, env=None):
        names = {"SBA_MCP_GATEWAY_URL": gateway.url} if gateway else {}
        return self.run_steps(*steps, env={"SBA_MCP_TOKEN_FILE": str(path), **names, **(env or {})})

    def test_from_a_file_without_its_line_end(self):
        gateway = self.gateway(hello=lambda _: mcp.text("hi"))
        path = self.root / "token"
        for content, wanted in ((TOKEN, TOKEN), (TOKEN + "\n", TOKEN), (TOKEN + "\r\n", TOKEN)):
            path.write_text(content, newline="")
            gateway.requests.clear()
            link = self.root / "link"
            link.unlink(missing_ok=True)
            link.symlink_to(path)
            outcome = self.with_file(link, self.leak("raw"), self.step("call_tool", tool="hello"), gateway=gateway,
                                     env={"SBA_MCP_TOKEN": "another-token"})
            self.assert_end(outcome, 0)
            self.assertEqual({sent["Authorization"] for sent in gateway.headers("tools/call")}, {f"Bearer {wanted}"})
            self.assert_clean(outcome)

    def test_that_cannot_be_read_ends_only_what_needs_it(self):
        fifo, directory, empty, large, secret, none = (self.root / name for name in (
            "fifo", "directory", "empty", "large", "secret", "none"))
        os.mkfifo(fifo)
        directory.mkdir()
        empty.write_text("\n")
        large.write_text("x" * 70000)
        secret.write_text(TOKEN)
        secret.chmod(0)
        gateway = self.gateway(hello=lambda _: mcp.text("hi"))
        for path in (fifo, directory, empty, large, secret, none):
            outcome = self.with_file(path, self.step("list_tree", path="."), gateway=gateway)
            self.assertEqual(outcome.exit, 0, path)
            self.assertEqual(len(outcome.events("secret.warning")), 1, path)
            outcome = self.with_file(path, self.step("call_tool", tool="hello"), gateway=gateway)
            self.assertEqual(outcome.exit, 1, path)
            self.assert_says(outcome.message, "token", str(path))
        self.assertEqual(gateway.requests, [])

    def test_is_in_no_environment_and_on_no_command_line(self):
        self.fifo()
        script = "cat /proc/self/environ /proc/$PPID/environ /proc/$PPID/cmdline; echo on > turn; cat turn"
        process = self.start(self.job(self.sh(script)), env={"SBA_MCP_TOKEN": TOKEN, "KEPT": "kept"})
        try:
            with open(self.workspace / "turn") as turn:
                turn.readline()
            if os.geteuid() == 0:
                runner = pathlib.Path(f"/proc/{process.pid}")
                environment = (runner / "environ").read_bytes()
                self.assertIn(b"KEPT=kept", environment)
                self.assertFalse(leaks(environment + (runner / "cmdline").read_bytes()))
            with open(self.workspace / "turn", "w"):
                pass
        finally:
            outcome = self.outcome_of(process)
        self.assert_clean(outcome)
        self.assertIn("KEPT=kept", outcome.steps[0]["output"])


class TheKey(SecretCase):
    """The API key of OPENAI_BASE_URL: kept as the token is, and sent to that address only."""

    @staticmethod
    def sent(server):
        return {request["headers"].get("authorization") for request in server.requests}

    def test_of_a_file_or_a_variable(self):
        (self.root / "key").write_text(TOKEN + "\n")
        for given in ({"SBA_API_KEY_FILE": str(self.root / "key"), "OPENAI_API_KEY": "another-key"},
                      {"OPENAI_API_KEY": TOKEN}):
            server = self.server(runs("env; cat loot"), runs(f"{PYTHON} leak.py base64_1"), finish())
            outcome = self.assert_end(self.run_agent(server, form="openai", env=given), 0)
            self.assertEqual(self.sent(server), {"Bearer " + TOKEN})
            self.assert_lacks(outcome.steps[0]["output"], "OPENAI_API_KEY", "SBA_API_KEY_FILE", "another-key")
            self.assert_clean(outcome, servers=[json.dumps(server.chats()).encode()])

    def test_goes_to_no_other_address(self):
        key = {"OPENAI_API_KEY": TOKEN}
        job = self.job(self.step("ask_model", prompt="p"), inference={"allowed_models": ["m"]})
        for variable, suffix in (("INFERENCE_PROXY_URL", ""), ("OLLAMA_BASE_URL", "/v1"),
                                 ("SBA_API_EGRESS_URL", "/v1")):
            server = self.server({"content": "hello"}, formats=["openai"])
            outcome = self.run_job(job, env={variable: server.url + suffix, **key})
            self.assertEqual((outcome.exit, self.sent(server)), (0, {None}), variable)
        other = self.status_server()
        redirecting = self.closing(status.Server((307, {"Location": other.url})))
        outcome = self.run_job(job, env={"OPENAI_BASE_URL": redirecting.url, **key})
        self.assertEqual(outcome.code, "inference_unavailable")
        self.assertIn("Authorization: Bearer " + TOKEN, redirecting.heads[0])
        self.assertEqual(other.connections, 0)

    def test_of_a_file_that_cannot_be_read(self):
        server = self.server({"content": "hello"})
        job = self.job(self.step("ask_model", prompt="p"), inference={"allowed_models": ["m"]})
        key = {"SBA_API_KEY_FILE": str(self.root / "none"), "OPENAI_BASE_URL": server.url + "/v1"}
        outcome = self.run_job(job, env=key)
        self.assertRegex(outcome.message, f"OPENAI_BASE_URL: cannot read the API key: .*{self.root}/none")
        self.assertEqual((server.requests, len(outcome.events("secret.warning"))), ([], 1))
        self.assertEqual(self.run_job(job, env={**key, "OLLAMA_BASE_URL": server.url}).exit, 0)
        outcome = self.run_job(job, env={"OPENAI_API_KEY": "two-words\nX: y", "OPENAI_BASE_URL": server.url + "/v1"})
        self.assertIn("OPENAI_BASE_URL: the API key has characters that a header cannot carry", outcome.message)


sba.main(__name__)
