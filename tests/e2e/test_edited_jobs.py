# SPDX-License-Identifier: Apache-2.0
"""--resume of a job that somebody edited, and of a journal that another program wrote anew or that is very long."""
import json
import os
import unittest

import sba
from agent_case import AgentCase, call, finish
from sba import SandboxCase


def counted(name):
    return SandboxCase.sh(f"echo {name} | tee -a count")


class EditedJob(SandboxCase):
    def failed(self, *steps, **fields):
        """Runs a job whose last step fails; gives it without that step."""
        job = self.job(*steps, self.sh("exit 1"), **fields)
        self.assertEqual(self.run_job(job).exit, 1)
        return {**job, "steps": list(steps)}

    def counts(self):
        return self.text("count").split()

    def resumed(self, job, expected, **options):
        outcome = self.run_job(job, "--resume", **options)
        self.assertEqual((outcome.exit, self.counts()), (0, expected), outcome.stderr)
        sba.result_validator().validate(outcome.result)
        self.assertEqual(set(outcome.statuses), {"success"})
        self.assertEqual([step["index"] for step in outcome.steps], list(range(len(job["steps"]))))
        self.assertEqual(self.run_job(job, "--resume").result_bytes, outcome.result_bytes)
        return outcome

    def said(self, outcome):
        return outcome.events("job.changed")[0]["message"]

    def test_steps_before_the_first_difference_stay(self):
        job = self.failed(counted("one"), counted("two"))
        job["steps"] += [counted("three"), counted("four")]
        outcome = self.resumed(job, ["one", "two", "three", "four"])
        self.assertEqual(self.said(outcome), "step 3 was changed; it and all after it run")

    def test_a_difference_is_of_position_type_arguments_or_id(self):
        changes = [("arguments", {"shell": "echo two | tee -a count; true"}), ("id", "other"),
                   ("steps", "exchanged"), ("arguments", {"shell": "echo two | tee -a count", "timeout_seconds": 9})]
        for name, value in changes:
            with self.subTest(name):
                job = self.failed(counted("one"), counted("two"), counted("three"))
                again = ["two", "three"]
                if name == "steps":
                    job["steps"][1:] = reversed(job["steps"][1:])
                    again = ["three", "two"]
                else:
                    job["steps"][1] = {**job["steps"][1], name: value}
                outcome = self.resumed(job, ["one", "two", "three", *again])
                self.assertEqual(self.said(outcome), "step 2 was changed; it and all after it run")
                (self.workspace / "count").unlink()

    def test_an_edit_of_an_edit(self):
        job = self.failed(counted("one"), counted("two"))
        job["steps"] = [job["steps"][0], counted("second"), self.sh("exit 1")]
        self.assertEqual(self.run_job(job, "--resume").exit, 1)
        job["steps"] = [job["steps"][0], counted("two"), counted("three")]
        self.resumed(job, ["one", "two", "second", "two", "three"])

    def test_long_arguments_are_compared_too(self):
        job = self.failed(self.write_file("large", "x" * 100000), counted("one"))
        self.resumed(job, ["one"])
        (self.workspace / "count").unlink()
        job = self.failed(self.write_file("large", "x" * 100000), counted("one"))
        job["steps"][0] = self.write_file("large", "x" * 99999 + "y")
        outcome = self.resumed(job, ["one", "one"])
        self.assertEqual(self.said(outcome), "step 1 was changed; it and all after it run")

    def test_limits_and_criteria_may_change(self):
        second = self.sh("test -e good || sleep 60; echo two | tee -a count")
        job = self.job(counted("one"), second, max_runtime_seconds=2)
        self.assertEqual(self.run_job(job).code, "timeout")
        self.put("good")
        job["constraints"]["max_runtime_seconds"] = 60
        job["context"] = {"acceptance_criteria": [{"criterion": "it is two", "check": {"shell": "grep two count"}}]}
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, self.counts()), (0, ["one", "two"]), outcome.result)
        self.assertEqual(self.said(outcome), "the job was edited; the steps that are done stay as they are")
        self.assertTrue(outcome.acceptance[0]["met"])

    def test_a_job_that_succeeded_goes_on_where_steps_were_added(self):
        job = self.job(counted("one"))
        self.assertEqual(self.run_job(job).exit, 0)
        job["steps"].append(counted("two"))
        self.assertEqual(self.said(self.resumed(job, ["one", "two"])), "step 2 is new; it and all after it run")

    def test_killed_after_the_edit(self):
        # The journal says what stays before anything runs.
        job = self.failed(counted("one"), counted("two"))
        second = self.sh("echo second >> count; test -e killed || { touch killed; sleep 60; }")
        job["steps"] = [job["steps"][0], second, counted("three")]
        self.assertEqual(self.run_and_kill(job, "--resume").exit, -9)
        self.resumed(job, ["one", "two", "second", "second", "three"])

    def test_killed_in_the_step_that_is_edited(self):
        job = self.job(counted("one"), self.sh("touch killed; sleep 60"))
        self.run_and_kill(job)
        job["steps"][1] = counted("two")
        outcome = self.resumed(job, ["one", "two"])
        self.assertEqual(outcome.events("step.interrupted"), [])  # this one never ran

    def test_steps_that_became_an_agents_task(self):
        job = self.failed(counted("one"))
        job = {**job, "steps": [], "execution_mode": "agent_inference", "inference": {"allowed_models": ["m"]}}
        job["constraints"]["max_runtime_seconds"] = 1
        outcome = self.run_job(job, "--resume", env={"OLLAMA_BASE_URL": "http://127.0.0.1:9"})
        self.assertEqual((outcome.code, outcome.steps), ("inference_unavailable", []), outcome.stderr)
        self.assertEqual(self.counts(), ["one"])
        self.assertEqual(self.said(outcome),
                         "the job had steps and is an agent's now; nothing of what was done is kept")

    def test_ids_must_be_the_same(self):
        job = self.failed(counted("one"))
        before = self.result_path.read_bytes()
        outcome = self.run_job({**job, "job_id": "another"}, "--resume")
        self.assertEqual((outcome.exit, outcome.result_bytes), (2, before))
        self.assertIn("it belongs to another job", outcome.events("job.refused")[0]["failure_message"])

    def test_a_job_that_is_no_more_valid_leaves_the_result(self):
        job = self.failed(counted("one"))
        before = self.result_path.read_bytes()
        outcome = self.run_job({**job, "steps": [{"type": "unknown"}]}, "--resume")
        self.assertEqual((outcome.exit, outcome.result_bytes), (2, before))


class EditedAgentJob(AgentCase):
    environment = {"SBA_CONFINE": "off"}

    def test_the_model_is_told_and_its_new_limits_hold(self):
        once = "test -e killed && exit; touch killed; sleep 60"
        commands = [call("run_command", shell=script) for script in ("echo first", once)]
        server = self.server(*commands, call("list_tree"), finish(), counts=False)
        job = self.agent_job(context={"requirements": ["do it"]}, max_runtime_seconds=60)
        env = {"OLLAMA_BASE_URL": server.url}
        self.run_and_kill(job, env=env)
        job["context"]["requirements"] = ["do it twice"]
        job["constraints"]["max_runtime_seconds"] = 120
        outcome = self.run_job(job, "--resume", env=env)
        self.assertEqual((outcome.exit, outcome.statuses), (0, ["success", "failure", "success"]), outcome.message)
        messages = server.chats()[-1]["messages"]
        self.assertIn("do it twice", json.dumps(messages[:2]))
        self.assertIn("the job was edited since", server.chats()[-2]["messages"][-1]["content"])
        self.assertEqual(len(outcome.events("job.changed")), 1)
        ids = [one["id"] for message in messages for one in message.get("tool_calls") or [] if "id" in one]
        self.assertEqual(len(ids), len(set(ids)))

    def test_a_direct_job_that_becomes_an_agents(self):
        job = self.job(self.sh("echo one"), self.sh("exit 1"), inference={"allowed_models": ["m"]})
        self.assertEqual(self.run_job(job).exit, 1)
        server = self.server(finish(), finish())
        agents = {**job, "execution_mode": "agent_inference"}
        outcome = self.run_job(agents, "--resume", env={"OLLAMA_BASE_URL": server.url})
        self.assertEqual((outcome.exit, outcome.steps), (0, []), outcome.message)
        outcome = self.run_job({**job, "steps": [self.sh("echo two")]}, "--resume")
        self.assertEqual((outcome.exit, outcome.statuses), (0, ["success"]), outcome.message)


class RewrittenJournal(SandboxCase):
    """By another program: other blanks, another order of members, other escapes."""

    def rewrite(self, write):
        self.journal_file.write_text("".join(write(line) + "\n" for line in self.journal()))

    def check(self, write):
        said, long = self.sh('echo "a \\"b\\" é \\\\"'), self.write_file("f", "x" * 70000)
        job = self.job(said, long, self.read_file("f"), self.sh("test -e good"))
        self.assertEqual(self.run_job(job).exit, 1)
        before = self.result_path.read_bytes()
        self.rewrite(write)
        page = sba.run("--report", self.result_path)
        self.assertIn(b"This report uses the journal", page.stdout)
        self.put("good")
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, outcome.statuses), (0, ["success"] * 4), outcome.stderr)
        sba.result_validator().validate(outcome.result)
        self.assertEqual(outcome.steps[:3], json.loads(before)["steps"][:3])
        self.assertEqual(len(self.journal()), len(self.journal_file.read_text().splitlines()))

    def test_with_blanks(self):
        self.check(json.dumps)

    def test_with_sorted_members(self):
        self.check(lambda line: json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False))

    def test_over_several_lines(self):
        job = self.job(self.sh("echo one"), self.sh("test -e good"))
        self.run_job(job)
        self.rewrite(lambda line: json.dumps(line, indent=2))
        self.put("good")
        self.assertEqual(self.run_job(job, "--resume").statuses, ["success"] * 2)

    def test_without_its_last_line_end(self):
        job = self.job(self.sh("echo one >> count"), self.sh("test -e good"))
        self.run_job(job)
        lines = self.journal_file.read_bytes().splitlines()
        last = next(number for number, line in enumerate(lines) if b"step.finished" in line)
        self.journal_file.write_bytes(b"\n".join(lines[:last + 1]))
        self.put("good")
        self.assertEqual(self.run_job(job, "--resume").statuses, ["success"] * 2)
        self.assertEqual(self.text("count"), "one\n")
        self.assertEqual(len(self.journal()), len(self.journal_file.read_text().splitlines()))

    def test_a_change_without_its_step(self):
        job = self.job(self.sh("true"), self.sh("test -e good"))
        self.run_job(job)
        lines = self.journal_file.read_text().splitlines()
        lines.insert(2, '{"event":"step.changes","changes":[]}')
        self.journal_file.write_text("\n".join(lines) + "\n")
        before = self.result_path.read_bytes()
        page = sba.run("--report", self.result_path)
        self.assertEqual((page.returncode, page.stderr), (0, b""))
        self.assertIn(b"line 3: /index: is missing", page.stdout)
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, outcome.result_bytes), (2, before))
        replay = self.run_job(job, "--replay", str(self.recording()))
        self.assertIn("line 3: /index: is missing", replay.message)

    @sba.wants("strace")
    def test_a_disk_that_cannot_be_read(self):
        job = self.job(*[self.sh("true")] * 50, self.sh("test -e good"))
        self.run_job(job)
        before, journal, refusals = self.result_path.read_bytes(), self.journal_file.read_bytes(), 0
        for number in range(1, 20):
            outcome = self.run_job(job, "--resume", wrapper=sba.injecting("pread64", f"error=EIO:when={number}"))
            self.assertEqual(outcome.statuses[:50], ["success"] * 50, number)
            if "cannot be used" in json.dumps(outcome.events("job.refused")):
                files = outcome.result_bytes, self.journal_file.read_bytes()
                self.assertEqual((outcome.exit, *files), (2, before, journal), number)
                refusals += 1
            self.result_path.write_bytes(before)
            self.journal_file.write_bytes(journal)
        self.assertGreater(refusals, 3)

    def test_only_its_end_was_written(self):
        # The first result could not be: the job begins anew.
        self.put(self.journal_file, '{"event":"job.finished","result":{}}\n')
        outcome = self.assert_end(self.run_job(self.job(self.sh("true")), "--resume"), 0)
        self.assertIn("starting anew", outcome.events("journal.missing")[0]["error"])


class LargestResults(SandboxCase):
    """What any step gives can be read again: by --resume, and by --report."""

    def test_of_each_step_type(self):
        deep = "/".join(["d"] * 130)
        steps = [
            self.sh(f"mkdir -p {deep}; head -c 300000 /dev/urandom >bytes; seq 30000 >lines; "
                    "seq 30000; echo '\\001\\033'; cat bytes"),
            self.step("list_tree"), self.read_file("bytes"), self.read_file("lines"),
            self.step("search_files", pattern="7"), self.write_file("w" * 200, "x" * 300000),
            self.step("replace_in_file", path="lines", old_text="30000", new_text="y"),
            self.apply_diff("".join(f"--- /dev/null\n+++ b/new{number}\n@@ -0,0 +1 @@\n+x\n" for number in range(500))),
        ]
        job = self.job(*steps, self.sh("test -e good"), max_output_bytes=1 << 24)
        first = self.run_job(job)
        self.assertEqual(first.statuses, ["success"] * len(steps) + ["failure"], first.message)
        for form in ("html", "markdown", "junit"):
            page = sba.run("--report", self.result_path, "--format", form)
            self.assertEqual((page.returncode, page.stderr), (0, b""), form)
        self.put("good")
        second = self.run_job(job, "--resume")
        self.assertEqual((second.exit, second.steps[:-1]), (0, first.steps[:-1]), second.stderr[-2000:])


class OwnFiles(AgentCase):
    def test_outputs_are_the_runners(self):
        # The job directory lies in the workspace: what tools answered is not part of it.
        server = self.server(call("run_command", shell="seq 9000"), call("list_tree", path=""), finish())
        inside = self.folder(self.workspace / "job")
        self.result_path = inside / "result.json"
        outcome = self.run_agent(server)
        self.assertEqual((outcome.exit, (inside / "outputs").is_dir()), (0, True), outcome.message)
        self.assertNotIn("outputs", json.dumps(outcome.steps[1]["result"]))


@unittest.skipIf(sba.IS_DEV, "the sanitizers take memory as they like")
class Memory(SandboxCase):
    """Of a long journal and a large result, beside the job itself and one step's own output."""
    COUNT = 20000 if sba.LONG else 800
    SIZE = 100000  # bytes of one output
    MOST = 32 << 20

    def used(self, job, *arguments):
        """Bytes that a run of the program takes at most."""
        with open(os.devnull, "wb") as nowhere:
            process = self.start(job, arguments=arguments, stdout=nowhere, stderr=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(process.returncode, (0, 1))
        return usage.ru_maxrss * 1024

    def setUp(self):
        super().setUp()
        steps = [{"type": "run_command", "arguments": {"command": "true"}}] * self.COUNT
        self.long = self.job(*steps, self.sh("test -e good"))
        self.least = self.used(self.long, *self.arguments())
        self.grow(self.journal_file, "a line of output\n" * (self.SIZE // 17))

    def grow(self, path, output):
        """Gives each step a long output."""
        lines = path.read_text().splitlines()
        with open(path, "w") as grown:
            for line in lines:
                if line.startswith('{"event":"step.finished"'):
                    event = json.loads(line)
                    event["entry"]["output"] = output
                    line = json.dumps(event, separators=(",", ":"))
                grown.write(line + "\n")

    def test_resume_and_report(self):
        size = self.journal_file.stat().st_size
        self.assertGreater(size, self.COUNT * self.SIZE * 0.9)
        self.put("good")
        memory = self.used(self.long, *self.arguments(), "--resume")
        self.assertLess(memory, self.least + self.MOST, f"a journal of {size} bytes")
        memory = self.used(self.long, "--report", str(self.result_path))
        self.assertLess(memory, self.least + self.MOST, f"a result of {size} bytes")
        result = json.loads(self.result_path.read_bytes()) # here: a child's memory begins with this process's
        self.assertEqual((len(result["steps"]), result["status"]), (self.COUNT + 1, "success"))


sba.main(__name__)
