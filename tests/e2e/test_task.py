# SPDX-License-Identifier: Apache-2.0
"""--task: an agent's job without JSON."""
import json
import os
import pathlib
import signal
import subprocess

import sba
from agent_case import LIST, AgentCase, finish, writes
from servers.model import call


class Task(AgentCase):
    def setUp(self):
        super().setUp()
        self.home, self.runtime = self.root / "home", self.root / "runtime"
        for directory in (self.home, self.runtime):
            directory.mkdir(mode=0o700)
            self.give(directory)
        self.variables = {"HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime)}

    def task(self, server, *arguments, env=None, **options):
        variables = {**self.variables, "OLLAMA_BASE_URL": server.url, **(env or {})}
        return sba.run(*arguments, env=variables, cwd=self.workspace, **options)

    def kept(self):
        (place,) = (self.home / ".local/state/cynode-sba").iterdir()
        return place

    def test_a_task_with_a_check(self):
        self.put("Makefile", "test:\n\ttest -e fixed\n")
        server = self.server(writes("fixed", ""), finish("It is fixed."))
        done = self.task(server, "--task", "Fix it", "--check", "make test", "--check=test -s Makefile", "--log-format",
                         "text")
        self.assertEqual((done.returncode, done.stdout), (0, b"It is fixed.\n"), done.stderr)
        lines, kept = done.stderr.decode().splitlines(), self.kept()
        self.assertEqual(lines[-5:], [
            "    It is fixed.", "changed: 1 created: fixed", f"to undo: git apply -R {kept}/artifacts/changes.patch",
            f"report: {kept}/report.html", f"result: {kept}/result.json"])
        self.assertNotIn("warning", done.stderr.decode())
        result = json.loads((kept / "result.json").read_text())
        self.assertEqual([(each["criterion"], each["met"]) for each in result["acceptance"]],
                         [("make test ends with exit code 0", True), ("test -s Makefile ends with exit code 0", True)])
        self.assertEqual([item["title"] for item in result["todo"]["items"]][0], "Fix it")
        names = {"job.json", "result.json", "journal.jsonl", "report.html", "artifacts"}
        self.assertEqual({path.name for path in kept.iterdir()}, names)
        self.assertEqual(kept.stat().st_mode & 0o777, 0o700)
        self.assertIn("It is fixed.", (kept / "report.html").read_text())
        job = json.loads((kept / "job.json").read_text())
        limits = {"max_runtime_seconds": 1800, "max_output_bytes": 1 << 20, "report_changes": True}
        self.assertEqual(job["constraints"], limits)
        self.assertNotEqual(job["job_id"], job["task_id"])
        self.assertTrue((self.workspace / "fixed").exists())
        self.assertEqual(list((self.runtime / "cynode-sba").iterdir()), [], "the job's own directory is gone")
        subprocess.run(lines[-3].removeprefix("to undo: ").split(), cwd=self.workspace, check=True)
        self.assertFalse((self.workspace / "fixed").exists(), "undone as the log says")

    def test_its_directory_is_private_and_artifacts_stay(self):
        server = self.server(call("run_command",
                                  shell=f"ls -ld {self.runtime}/cynode-sba/*; echo x >$CYNODE_ARTIFACTS_DIR/kept"),
                             finish("x"))
        done = self.task(server, "--task", "x")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.kept() / "result.json").read_text())
        self.assertTrue(result["steps"][0]["output"].startswith("drwx------"), result["steps"][0])
        self.assertEqual((self.kept() / "artifacts/kept").read_text(), "x\n")
        self.assertEqual([each["path"] for each in result["artifacts"]], ["kept"])

    def test_what_fails_is_kept_too(self):
        server = self.server(LIST, call("finish", answer="It cannot be done.", status="failed"))
        done = self.task(server, "--task", "x", "--time", "90s", "--workspace", str(self.workspace),
                         env={"XDG_STATE_HOME": str(self.home / "state")})
        self.assertEqual((done.returncode, done.stdout), (1, b"It cannot be done.\n"))
        (kept,) = (self.home / "state/cynode-sba").iterdir()
        self.assertEqual(json.loads((kept / "result.json").read_text())["failure_code"], "agent_gave_up")
        self.assertEqual(json.loads(done.stderr.splitlines()[-1])["result"], str(kept / "result.json"))
        self.assertEqual(json.loads((kept / "job.json").read_text())["constraints"]["max_runtime_seconds"], 90)

    def test_a_task_that_is_refused_is_kept_too(self):
        # It has no journal.
        done = self.task(self.server(), "--task", "x", "--log-format", "text", env={"SBA_EXECUTION_MODE": "other"})
        self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
        names = {path.name for path in self.kept().iterdir()}
        self.assertEqual(names, {"job.json", "result.json", "report.html"})
        self.assertEqual(done.stderr.decode().splitlines()[-1], f"result: {self.kept()}/result.json")
        self.assertEqual(list((self.runtime / "cynode-sba").iterdir()), [])

    def test_a_task_that_begins_like_the_path_of_a_context_file(self):
        self.put("script", "#!/bin/sh\ntrue\n", mode=0o755)
        server = self.server(writes("fixed", ""), finish("It is fixed."))
        done = self.task(server, "--task", "/job/queue.py crashes: mend it", "--check", "/job/test || ./script")
        self.assertEqual((done.returncode, done.stdout), (0, b"It is fixed.\n"), done.stderr)
        self.assertIn("/job/queue.py crashes: mend it", json.dumps(server.chats()[0]))

    def test_what_a_crashed_runner_did_is_kept_too(self):
        server = self.server(call("run_command", shell="echo said; touch begun; sleep 600"))
        process = subprocess.Popen([sba.BINARY, "--task", "x"], cwd=self.workspace, preexec_fn=sba.reset_signals,
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **sba.ordinary_user(),
                                   env={"PATH": "/usr/bin:/bin", **self.variables, "OLLAMA_BASE_URL": server.url})
        sba.wait_for((self.workspace / "begun").exists, "the command")
        process.send_signal(signal.SIGSEGV)
        _, log = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, log)
        kept = self.kept()
        self.assertEqual(json.loads((kept / "result.json").read_text())["failure_code"], "internal_error")
        self.assertLessEqual({"job.json", "journal.jsonl", "report.html"}, {path.name for path in kept.iterdir()})
        self.assertIn(str(kept / "result.json"), log.decode())
        self.assertEqual(list((self.runtime / "cynode-sba").iterdir()), [], log)

    def test_without_a_model_the_endpoint_is_asked(self):
        two = {"small": {}, "large": {}}
        server = self.server(LIST, finish("x"), models=two)
        done = self.task(server, "--task", "x")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertRegex(done.stderr.decode(),
                         r"^cynode-sba: there are several models: (small and large|large and small); .*--model")
        self.assertEqual([list(self.home.iterdir()), list(self.runtime.iterdir()), server.chats()], [[], [], []])
        for more in ({"arguments": ["--model", "large"]}, {"env": {"INFERENCE_MODEL": "large"}}):
            server = self.server(LIST, finish("x"), models=two)
            done = self.task(server, "--task", "x", *more.get("arguments", []), env=more.get("env"))
            self.assertEqual((done.returncode, server.chats()[0]["model"]), (0, "large"), done.stderr)

    def test_a_directory_that_others_can_enter_is_not_used(self):
        # Nor one that is a link to somewhere else: the job goes to /var/tmp then.
        (self.runtime / "cynode-sba").symlink_to(self.home)
        own = pathlib.Path(f"/var/tmp/cynode-sba-{sba.UID or os.getuid()}")
        if not own.exists():
            self.addCleanup(own.rmdir)
        done = self.task(self.server(LIST, finish("x")), "--task", "x")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.name for path in self.home.iterdir()], [".local"])
        self.assertEqual(own.stat().st_mode & 0o777, 0o700)


sba.main(__name__)
