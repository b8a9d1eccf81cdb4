# SPDX-License-Identifier: Apache-2.0
"""cynode_sba.atif of clients/python: journals, whole, cut and damaged, as ATIF documents, made by PyPI's own model."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests"), str(TOP / "tests/e2e")]
import packages  # noqa: E402
import sba  # noqa: E402
from agent_case import AgentCase, call, calls, finish  # noqa: E402


class Atif(AgentCase):
    def setUp(self):
        super().setUp()
        self.programs = packages.environment("atif-1", "atif==1.8.0")

    def convert(self, *arguments):
        return subprocess.run([self.programs / "python", "-B", "-m", "cynode_sba.atif", *arguments],
                              capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(TOP / "clients/python")})

    def document(self):
        done = self.convert(self.journal_file)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def agent_run(self):
        replies = [{**call("run_command", argv=["echo", "grüße"]), "thinking": "I look.", "content": "Looking."},
                   calls(("write_file", {"path": "a", "content": "1\n"}), ("read_file", {"path": "missing"})),
                   {"content": ""}, finish("All is done.", ("a exists", True, "step-2 wrote it"))]
        job = self.agent_job(context={"acceptance_criteria": ["a exists"], "task_context": "TASK"})
        return self.assert_end(self.run_agent(self.server(*replies), job=job), 0)

    def test_an_agents_job(self):
        outcome = self.agent_run()
        document = self.document()
        steps = document["steps"]
        self.assertEqual([step["source"] for step in steps],
                         ["system", "user", "agent", "agent", "agent", "user", "agent"])
        self.assertIn("TASK", steps[1]["message"])
        first, second, silent, nudge, last = steps[2:]
        self.assertEqual((first["message"], first["reasoning_content"], first["llm_call_count"]),
                         ("Looking.", "I look.", 1))
        self.assertEqual(first["tool_calls"][0]["arguments"], {"argv": ["echo", "grüße"]})
        (result,) = first["observation"]["results"]
        self.assertEqual(result["source_call_id"], first["tool_calls"][0]["tool_call_id"])
        self.assertIn("grüße", result["content"])
        self.assertEqual((result["extra"]["step"], result["extra"]["status"], result["extra"]["exit_code"]),
                         ("step-1", "success", 0))
        self.assertEqual([one["extra"]["status"] for one in second["observation"]["results"]], ["success", "failure"])
        self.assertEqual((silent["message"], "empty" in nudge["message"]), ("", True))
        self.assertEqual(last["tool_calls"][0]["function_name"], "finish")
        self.assertEqual(document["extra"]["acceptance"], outcome.result["acceptance"])
        for name in ("prompt_tokens", "completion_tokens"):
            self.assertEqual(document["final_metrics"][f"total_{name}"], outcome.result["inference"][name])
        self.assertEqual((document["agent"]["model_name"], document["session_id"], "notes" in document),
                         ("m", "job-1", False))

    def test_a_direct_job(self):
        job = self.job(self.sh("echo out"), self.step("write_file", path="a", content="x"),
                       self.step("run_command", command="false"), self.step("list_tree"))
        job["steps"][1]["id"] = "mine"
        self.run_job(job)
        steps = self.document()["steps"]
        self.assertEqual([step["source"] for step in steps], ["agent", "agent", "agent", "system"])
        self.assertEqual({step["llm_call_count"] for step in steps[:3]}, {0})
        self.assertEqual(steps[0]["observation"]["results"][0]["content"], "out\n")
        self.assertIn("failed (step_failed)", steps[2]["observation"]["results"][0]["content"])
        self.assertIn("step_failed", steps[3]["message"])
        self.assertEqual(steps[1]["tool_calls"][0]["arguments"], {"path": "a", "content": "x"})
        (self.job_directory / "job.json").write_text(json.dumps({**job, "task_id": "another"}))
        self.assertEqual(self.document()["steps"][1]["tool_calls"][0]["arguments"], {}, "those of another job")

    def test_a_killed_run_and_its_continuation(self):
        server = self.server(call("run_command", argv=["echo", "first"]), call("run_command", argv=["sleep", "60"]))
        self.run_and_signal(self.agent_job(), signal.SIGKILL,
                            lambda: self.journal_file.is_file() and b'"index":1' in self.journal_file.read_bytes(),
                            "the second step", env={"OLLAMA_BASE_URL": server.url})
        document = self.document()
        self.assertEqual((document["extra"]["status"], document["steps"][-1]["message"]),
                         ("interrupted", "The job ended: interrupted."))
        self.assertEqual(document["steps"][3]["observation"]["results"][0]["extra"]["status"], "interrupted")
        self.assert_end(self.run_agent(self.server(finish("It is done.")), "--resume"), 0)
        steps = self.document()["steps"]
        self.assertIn("The run was interrupted. It continues here.", [step["message"] for step in steps])
        self.assertEqual(steps[-1]["tool_calls"][0]["function_name"], "finish")

    def test_a_journal_cut_anywhere(self):
        self.agent_run()
        whole = self.journal_file.read_bytes()
        ends = [match.end() for match in re.finditer(rb"\n", whole)]
        for place in (ends[0] - 1, ends[0], ends[2] + 5, ends[4], ends[-1] - 1):
            self.journal_file.write_bytes(whole[:place])
            done = self.convert(self.journal_file)
            if place < ends[0]:
                self.assertRegex(done.stderr, r"^cannot make a trajectory of the journal [^\n]+\n$")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                continue
            document = json.loads(done.stdout)
            self.assertEqual(("notes" in document, document["extra"]["status"]), (place not in ends, "interrupted"),
                             place)

    def test_what_is_no_journal(self):
        (self.root / "empty").touch()
        (self.root / "result").write_text('{"protocol_version":"1.0"}\n')
        (self.root / "binary").write_bytes(bytes(range(256)) * 4096)
        for name in ("empty", "result", "binary", "missing", "."):
            done = self.convert(self.root / name)
            self.assertRegex(done.stderr, r"^cannot make a trajectory of the journal [^\n]+\n$", name)
            self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_the_option_that_did_it_names_the_client(self):
        done = sba.run("--trajectory", self.journal_file)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"python3 -m cynode_sba.atif JOURNAL", done.stderr)


sba.main(__name__)
