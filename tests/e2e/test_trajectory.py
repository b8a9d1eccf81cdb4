# SPDX-License-Identifier: Apache-2.0
"""trajectory.json and --trajectory: a run as ATIF 1.8, whatever the job, the model and the end of the runner were.

The documents are checked by PyPI's own model of the format, and walked by two programs that read it. They need Python 3.12 and PyPI; the
tests of them are skipped without. All other tests hold the documents against the journal, with a check of their own.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import sba
import test_agent
import packages  # where sba looks for modules too
from test_agent import call, calls, finish

HERE = pathlib.Path(__file__).parent
MOST_MEMORY = 64 << 20
AGENT_ONLY = {"model_name", "reasoning_content", "tool_calls", "metrics"}


def environment():
    return packages.environment("atif-1", "atif==1.8.0", "atif-scan==0.7.3", "harbor-atif2otel==0.1.1")


class TrajectoryCase(test_agent.AgentCase):
    @property
    def path(self):
        return self.job_directory / "trajectory.json"

    def read(self, data=None):
        """A document, checked by hand."""
        document = json.loads(self.path.read_bytes() if data is None else data)
        self.assertEqual(document["schema_version"], "ATIF-v1.8")
        self.assertEqual(document["agent"]["name"], "cynode-sba")
        self.assertRegex(document["agent"]["version"], r"^\d+\.\d+")
        self.assertEqual([step["step_id"] for step in document["steps"]], list(range(1, len(document["steps"]) + 1)))
        self.assertGreater(len(document["steps"]), 0)
        for step in document["steps"]:
            self.assertIn(step["source"], ("system", "user", "agent"))
            self.assertIsInstance(step["message"], str)
            if step["source"] != "agent":
                self.assertFalse(AGENT_ONLY & set(step))
            if step.get("llm_call_count") == 0:
                self.assertFalse({"metrics", "reasoning_content"} & set(step))
            ids = {call["tool_call_id"] for call in step.get("tool_calls", [])}
            for call_ in step.get("tool_calls", []):
                self.assertIsInstance(call_["arguments"], dict)
            for result in step.get("observation", {}).get("results", []):
                self.assertIn(result.get("source_call_id"), {None, *ids})
                self.assertIsInstance(result["content"], str)
        self.assertEqual(document["final_metrics"]["total_steps"], len(document["steps"]))
        return document

    def trajectory(self, *arguments, expected=0, **options):
        done = sba.run("--trajectory", *arguments, **options)
        self.assertEqual(done.returncode, expected, done.stderr)
        return done

    def valid(self, *paths):
        """Has PyPI's own model of ATIF, and Harbor's converter to spans, read documents. Skips the test without them."""
        subprocess.run([environment() / "python", HERE / "atif_reader.py", *paths], check=True)

    def a_run(self):
        """A run with everything that a trajectory shows."""
        replies = [{**call("run_command", argv=["echo", "grüße"]), "thinking": "I look.", "content": "Looking."},
                   calls(("write_file", {"path": "a", "content": "1\n"}), ("read_file", {"path": "missing"})),
                   call("no_such_tool", x=1), {"content": ""},
                   finish("All is done.", ("a exists", True, "step-2 wrote it"))]
        server = self.server(*replies)
        job = self.agent_job(context={"acceptance_criteria": ["a exists"], "task_context": "TASK"})
        return self.run_agent(server, job=job)


class TheDocument(TrajectoryCase):
    def test_of_an_agents_job(self):
        outcome = self.a_run()
        self.assertEqual(outcome.exit, 0, outcome.result["failure_message"])
        document = self.read()
        self.assertEqual(document["session_id"], "job-1")
        self.assertEqual(document["agent"]["model_name"], "m")
        names = [tool["function"]["name"] for tool in document["agent"]["tool_definitions"]]
        self.assertLessEqual({"run_command", "write_file", "finish"}, set(names))
        steps = document["steps"]
        self.assertEqual([step["source"] for step in steps],
                         ["system", "user", "agent", "agent", "agent", "agent", "user", "agent"])
        self.assertIn("TASK", steps[0]["message"] + steps[1]["message"])
        first, second, third, silent, nudge, last = steps[2:]
        self.assertEqual((first["message"], first["reasoning_content"], first["llm_call_count"]), ("Looking.", "I look.", 1))
        self.assertEqual(first["tool_calls"][0]["arguments"], {"argv": ["echo", "grüße"]})
        result = first["observation"]["results"][0]
        self.assertEqual(result["source_call_id"], first["tool_calls"][0]["tool_call_id"])
        self.assertIn("grüße", result["content"])
        self.assertEqual((result["extra"]["step"], result["extra"]["status"], result["extra"]["exit_code"]), ("step-1", "success", 0))
        self.assertEqual([r["extra"]["status"] for r in second["observation"]["results"]], ["success", "failure"])
        self.assertIn("no_such_tool", third["observation"]["results"][0]["content"])
        self.assertNotIn("extra", third["observation"]["results"][0])
        self.assertEqual(silent["message"], "")
        self.assertIn("empty", nudge["message"])
        self.assertEqual((last["tool_calls"][0]["function_name"], last["tool_calls"][0]["arguments"]["answer"]), ("finish", "All is done."))
        self.assertEqual([document["extra"][name] for name in ("job_id", "task_id", "status")], ["job-1", "task-1", "success"])
        self.assertEqual(document["extra"]["acceptance"], outcome.result["acceptance"])
        self.assertEqual(document["final_metrics"]["total_prompt_tokens"], outcome.result["inference"]["prompt_tokens"])
        self.assertEqual(document["final_metrics"]["total_completion_tokens"], outcome.result["inference"]["completion_tokens"])
        times = [step["timestamp"] for step in steps if "timestamp" in step]
        self.assertEqual(times, sorted(times))
        self.assertNotIn("notes", document)

    def test_is_the_same_by_hand(self):
        self.a_run()
        written = self.path.read_bytes()
        self.assertEqual(self.trajectory(self.journal_file).stdout.split(), written.split())
        self.assertEqual(self.trajectory("-", stdin=self.journal_file.read_bytes()).stdout.split(), written.split())
        self.assertEqual(self.trajectory("--result", self.result_path).stdout.split(), written.split())

    def test_the_answers_of_the_last_turn_come_from_its_steps(self):
        server = self.server(calls(("run_command", {"argv": ["echo", "one"]}), ("todo_add", {"title": "x"}),
                                   ("run_command", {"argv": ["false"]}), ("finish", {"answer": "so"})))
        self.run_agent(server)
        results = self.read()["steps"][2]["observation"]["results"]
        self.assertEqual([(r["extra"]["step"], r["extra"]["status"]) for r in results], [("step-1", "success"), ("step-2", "failure")])
        self.assertIn("one", results[0]["content"])
        self.assertIn("failed (step_failed)", results[1]["content"])

    def test_a_failed_job_says_why_at_its_end(self):
        self.run_agent(self.server({"fault": {"name": "status", "status": 401}}))
        last = self.read()["steps"][-1]
        self.assertEqual((last["source"], last["extra"]["failure_code"]), ("system", "inference_unavailable"))
        self.assertIn("inference_unavailable", last["message"])
        self.run_job(self.agent_job())
        self.assertEqual(len(self.read()["steps"]), 1)

    def test_a_conversation_that_was_shortened_says_so(self):
        self.put("large", "line of a large file\n" * 400)
        replies = [call("read_file", path="large", max_bytes=8000 + i) for i in range(6)]
        server = self.server(*replies, finish(), models={"m": {"context_length": 8192}})
        outcome = self.run_agent(server)
        self.assertEqual(outcome.exit, 0, outcome.result["failure_message"])
        compacted = [step for step in self.read()["steps"] if "context_management" in step.get("extra", {})]
        self.assertGreater(len(compacted), 0)
        for step in compacted:
            about = step["extra"]["context_management"]
            self.assertEqual((step["source"], about["type"]), ("system", "compaction"))
            self.assertGreater(about["tokens_before"], about["tokens_after"])
        outcome = self.run_agent(self.server(), "--resume")
        self.assertEqual(outcome.exit, 0, "the journal of it can be continued")

    def test_of_a_direct_job_by_hand(self):
        job = self.job(self.step("run_command", shell="echo out; exit 0"), self.step("write_file", path="a", content="x"),
                       self.step("run_command", command="false"), self.step("list_tree"))
        job["steps"][1]["id"] = "mine"
        self.run_job(job)
        self.assertFalse(self.path.exists(), "nobody waits for it")
        document = self.read(self.trajectory(self.journal_file).stdout)
        steps = document["steps"]
        self.assertEqual([step["source"] for step in steps], ["agent", "agent", "agent", "system"])
        self.assertEqual({step["llm_call_count"] for step in steps[:3]}, {0})
        self.assertEqual([step["tool_calls"][0]["function_name"] for step in steps[:3]], ["run_command", "write_file", "run_command"])
        self.assertEqual(steps[1]["tool_calls"][0]["arguments"], {"path": "a", "content": "x"})
        self.assertEqual(steps[0]["observation"]["results"][0]["content"], "out\n")
        self.assertIn("failed (step_failed)", steps[2]["observation"]["results"][0]["content"])
        self.assertIn("Steps that did not run: 1.", steps[3]["message"])
        (self.job_directory / "job.json").write_text(json.dumps({**job, "task_id": "another"}))
        steps = self.read(self.trajectory(self.journal_file).stdout)["steps"]
        self.assertEqual(steps[1]["tool_calls"][0]["arguments"], {}, "they would be those of another job")

    def test_a_question_of_a_direct_job_is_a_request_to_a_model(self):
        server = self.server({"content": "Yes.", "prompt_tokens": 12, "completion_tokens": 3})
        job = self.job(self.step("ask_model", prompt="Is it?"), inference={"allowed_models": ["m"]})
        self.run_agent(server, job=job)
        step = self.read(self.trajectory(self.journal_file).stdout)["steps"][0]
        self.assertEqual((step["llm_call_count"], step["model_name"]), (1, "m"))
        self.assertEqual(step["metrics"], {"prompt_tokens": 12, "completion_tokens": 3})

    def test_a_check_is_a_step_of_the_runners_own(self):
        reply = {"content": "", "tool_calls": [{"id": "c1", "name": "run_command", "arguments": {"command": 7}},
                                               {"id": "c2", "name": "finish", "arguments": {"answer": "x"}}]}
        entry = {"index": 0, "id": "check-1", "type": "run_command", "status": "success", "started_at": "2026-01-31T12:00:01.000Z",
                 "duration_ms": 5, "exit_code": 0, "output": "ok"}
        lines = [{"event": "job", "job_sha256": "0", "job_id": "j", "task_id": "t", "started_wall": 1790000000000},
                 {"event": "model.session", "model": "m", "context_length": 4096}, {"event": "model.exchange", "messages": [], "reply": reply},
                 {"event": "step.started", "index": 0, "id": "check-1", "type": "run_command", "check": 1, "arguments": {"command": "make"}}]
        self.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines)
                                       + '{"event":"step.finished","entry":' + json.dumps(entry) + "}\n")
        turn, check = self.read(self.trajectory(self.journal_file).stdout)["steps"][:2]
        self.assertNotIn("observation", turn)
        self.assertEqual((check["source"], check["llm_call_count"], check["message"]), ("agent", 0, "run_command make"))
        self.assertEqual(check["tool_calls"], [{"tool_call_id": "check-1", "function_name": "run_command", "arguments": {"command": "make"}}])
        self.assertEqual(check["observation"]["results"][0]["content"], "ok")
        self.assertEqual(check["extra"], {"check": 1})

    def test_an_earlier_jobs_trajectory_does_not_stay(self):
        self.a_run()
        self.run_job(self.job(self.step("list_tree")))
        self.assertFalse(self.path.exists())


class Readers(TrajectoryCase):
    def test_pypis_model_and_programs_read_it(self):
        self.a_run()
        paths = [self.root / "agent" / "trajectory.json", self.root / "direct.json", self.root / "killed.json"]
        paths[0].parent.mkdir()
        shutil.copy(self.path, paths[0])
        journal = self.journal_file.read_bytes()
        self.journal_file.write_bytes(journal[:len(journal) * 2 // 3])
        paths[2].write_bytes(self.trajectory(self.journal_file).stdout)
        self.run_job(self.job(self.step("list_tree"), self.step("run_command", command="false")))
        paths[1].write_bytes(self.trajectory(self.journal_file).stdout)
        self.valid(*paths)
        scan = subprocess.run([environment() / "atif-scan", "--format", "json", "--no-cache", paths[0].parent],
                              capture_output=True, env={"HOME": str(self.root), "PATH": "/usr/bin:/bin"})
        self.assertEqual(scan.returncode, 0, scan.stderr)
        self.assertIn(b'"step', scan.stdout)
        shown = subprocess.run([environment() / "atif-inspect", paths[0], "--step", "3"], capture_output=True, check=True,
                               env={"HOME": str(self.root), "PATH": "/usr/bin:/bin"})
        self.assertIn("grüße", shown.stdout.decode())


class Ends(TrajectoryCase):
    def test_of_a_killed_run_and_of_its_continuation(self):
        server = self.server(call("run_command", argv=["echo", "first"]), call("run_command", argv=["sleep", "60"]))
        self.run_and_signal(self.agent_job(), signal.SIGKILL,
                            lambda: self.journal_file.is_file() and b'"index":1' in self.journal_file.read_bytes(), "the second step",
                            env={"OLLAMA_BASE_URL": server.url})
        self.assertFalse(self.path.exists())
        document = self.read(self.trajectory(self.journal_file).stdout)
        self.assertEqual(document["extra"]["status"], "interrupted")
        self.assertIn("not over", document["steps"][-1]["message"])
        self.assertEqual(document["steps"][3]["observation"]["results"][0]["extra"]["status"], "interrupted")
        outcome = self.run_agent(self.server(finish("It is done.")), "--resume")
        self.assertEqual(outcome.exit, 0, outcome.result["failure_message"])
        steps = self.read()["steps"]
        self.assertEqual([step["source"] for step in steps], ["system", "user", "agent", "agent", "system", "agent"])
        self.assertIn("interrupted", steps[3]["observation"]["results"][0]["content"])
        self.assertIn("continues", steps[4]["message"])

    def test_a_journal_cut_anywhere(self):
        self.a_run()
        whole = self.journal_file.read_bytes()
        ends = [match.end() for match in re.finditer(rb"\n", whole)]
        places = sorted({place for end, before in zip(ends, [0, *ends]) for place in (before + 1, (before + end) // 2, end - 1, end)})
        for place in places:
            self.journal_file.write_bytes(whole[:place])
            if place < ends[0]:
                error = self.trajectory(self.journal_file, expected=2)
                self.assertRegex(error.stderr.decode(), r"^cynode-sba: cannot make a trajectory of .*: it is not a journal: line 1: [^\n]+\n$")
                self.assertEqual(error.stdout, b"")
                continue
            document = self.read(self.trajectory(self.journal_file).stdout)
            self.assertEqual("notes" in document, place not in ends, place)
            self.assertEqual(document["extra"]["status"], "success" if place == len(whole) else "interrupted", place)

    def test_what_is_no_journal(self):
        os.mkfifo(self.root / "fifo")
        (self.root / "empty").touch()
        (self.root / "result").write_text('{"protocol_version":"1.0"}\n')
        (self.root / "binary").write_bytes(bytes(range(256)) * 4096)
        (self.root / "deep").write_text("[" * 100000 + "\n")
        for name in ("fifo", "empty", "result", "binary", "deep", "missing", "."):
            error = self.trajectory(self.root / name, expected=2)
            self.assertRegex(error.stderr.decode(), r"^cynode-sba: cannot make a trajectory of [^\n]+\n$")
            self.assertEqual(error.stdout, b"")

    def test_lines_that_people_changed(self):
        self.a_run()
        lines, places = self.journal(), []

        def walk(value, path):
            places.append(path)
            for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
                walk(part, [*path, key])

        walk(lines, [])
        for number, path in enumerate(places[1:]):
            changed = json.loads(json.dumps(lines))
            at = changed
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = [None, -1, 1.5, "", "x", [], {}, [[]], {"a": 1}, True][number % 10]
            if number % 3:  # every third is enough for the time that it takes
                continue
            self.journal_file.write_text("".join(json.dumps(line) + "\n" for line in changed))
            done = sba.run("--trajectory", self.journal_file)
            self.assertIn(done.returncode, (0, 2), (path, done.stderr))
            if done.returncode == 0:
                self.read(done.stdout)
            else:
                self.assertRegex(done.stderr.decode(), r"^cynode-sba: cannot make[^\n]+\n$", path)

    def test_a_reader_that_goes(self):
        self.write_large(40)
        done = sba.run_for_a_reader_that_goes("--trajectory", self.journal_file)
        self.assertIn(b"cannot write the trajectory", done.stderr)
        self.assertEqual(done.returncode, 3)

    def write_large(self, turns, size=52000):
        """A journal of so many turns, each with an answer of so many bytes; none is so large in a real run."""
        output = "a line of what a command prints\n" * (size // 64)
        with open(self.journal_file, "w", encoding="utf-8") as file:
            def line(event, **fields):
                file.write(json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n")
            line("job", job_sha256="0", job_id="j", task_id="t", started_wall=1790000000000)
            line("model.session", model="m", context_length=32768)
            for i in range(turns):
                messages = [{"role": "tool", "content": output, "tool_call_id": f"c{i - 1}", "step": f"step-{i}"}] if i else []
                line("model.exchange", number=i + 1, at="2026-01-31T12:00:00.500Z", messages=messages, reply={
                    "content": "", "thinking": "", "prompt_tokens": 9, "completion_tokens": 2,
                    "tool_calls": [{"id": f"c{i}", "name": "run_command", "arguments": {"command": "x"}}]})
                entry = {"index": i, "id": f"step-{i + 1}", "type": "run_command", "status": "success",
                         "started_at": "2026-01-31T12:00:00.000Z", "duration_ms": 1, "output": output}
                line("step.started", index=i, id=entry["id"], type="run_command")
                file.write('{"event":"step.finished","entry":' + json.dumps(entry) + "}\n")

    def test_two_thousand_turns_of_100_megabytes_take_little_memory(self):
        self.write_large(2000)
        self.assertGreater(self.journal_file.stat().st_size, 100 << 20)
        with open(self.root / "out", "wb") as out:
            process = subprocess.Popen([sba.BINARY, "--trajectory", self.journal_file], stdout=out, **sba.ordinary_user())
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        document = self.read((self.root / "out").read_bytes())
        self.assertEqual((len(document["steps"]), document["final_metrics"]["total_prompt_tokens"]), (2001, 18000))
        if not sba.IS_DEV:
            self.assertLess(usage.ru_maxrss * 1024, MOST_MEMORY)


class NeverFailsAJob(TrajectoryCase):
    def assert_logged(self, outcome):
        self.assertEqual((outcome.exit, outcome.result["status"]), (0, "success"), outcome.result["failure_message"])
        said = [line for line in outcome.log if line["event"] == "trajectory.failed"]
        self.assertEqual(len(said), 1)
        self.assertIn("--trajectory makes it from the journal", said[0]["error"])
        self.assertEqual([line["event"] for line in outcome.log][-1], "job.finished")
        self.assertEqual([path.name for path in self.job_directory.glob(".trajectory*")], [])

    def test_where_a_directory_has_its_name(self):
        self.path.mkdir()
        (self.path / "kept").touch()
        self.give(self.path, self.path / "kept")
        self.assert_logged(self.a_run())
        self.assertTrue((self.path / "kept").exists())

    def test_where_the_journal_is_gone(self):
        server = self.server(call("run_command", shell=f"rm -f {self.journal_file}"), finish())
        self.assert_logged(self.run_agent(server, env={"SBA_CONFINE": "off"}))

    def test_a_link_is_replaced_and_not_followed(self):
        victim = self.root / "victim"
        victim.write_text("mine")
        self.give(victim)
        server = self.server(call("run_command", shell=f"ln -s {victim} {self.path}; ln -s {victim} {self.job_directory}/.trajectory.json.tmp"),
                             finish())
        outcome = self.run_agent(server, env={"SBA_CONFINE": "off"})
        self.assertEqual(outcome.exit, 0, outcome.result["failure_message"])
        self.assertEqual(victim.read_text(), "mine")
        self.assertFalse(self.path.is_symlink())
        self.read()


if __name__ == "__main__":
    sba.main()
