# SPDX-License-Identifier: Apache-2.0
"""Results, journals and jobs of which one value is wrong: --report gives a page or says in one line why not, --resume
goes on or refuses, and nothing ends in a traceback."""
import copy
import json
import os
import random

import sba
from agent_case import AgentCase, calls, finish

FINISH = finish("done", ("good", True, "step-1"))
ROUNDS = 120 if sba.LONG else 60  # mutations of each kind of file
VALUES = [None, True, -1, 3, 1.5, 2**63 - 1, "", "x", "agent_gave_up", "2026-02-31T00:00:00Z", [], [None], [1, "x"], {},
          {"a": [1]}]


def places(value, path=()):
    """The path of each value in a JSON value but the whole."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


def mutated(value, chance):
    """A copy with one value replaced, removed or added; and what was done."""
    value = copy.deepcopy(value)
    *path, key = chance.choice(list(places(value)))
    holder = value
    for step in path:
        holder = holder[step]
    how = chance.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder["unknown"] = holder[key]
    else:
        holder[key] = chance.choice(VALUES)
        how = holder[key]
    return value, f"{[*path, key]}: {how!r}"


class CorruptRecords(AgentCase):
    def setUp(self):
        super().setUp()
        self.chance = random.Random(20261122)

    def write_lines(self, lines):
        self.journal_file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))

    def direct_job(self):
        return self.job(self.write_file("a", "x\n"), self.sh("echo one; echo two >&2"),
                        self.apply_diff("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"), self.sh("exit 3"),
                        self.step("list_tree"), context={"requirements": ["be good"]})

    def run_agent_job(self):
        first = calls(("run_command", {"argv": ["echo", "hi"]}), ("todo_add", {"title": "more"}),
                      ("read_file", {"path": "none"}))
        job = self.agent_job(context={"acceptance_criteria": ["good"]})
        self.assert_end(self.run_agent(self.server(first, *[FINISH] * 4), job=job), 0)

    def check_report(self, what):
        done = sba.run("--report", str(self.result_path))
        said = done.stderr.decode()
        self.assertIn(done.returncode, (0, 1, 2), (what, said))
        self.assertNotIn("traceback", said, what)
        if done.returncode == 0:
            self.assertTrue(done.stdout.startswith(b"<!doctype html>") and done.stdout.endswith(b"</html>\n"), what)
        else:
            self.assertRegex(said, r"\Acynode-sba: .*\n\Z", what)
            self.assertEqual(done.stdout, b"", what)

    def check_reports(self):
        def check(rounds, path, value, write):
            for _ in range(rounds):
                bad, what = mutated(value, self.chance)
                write(bad)
                self.check_report(f"{path.name} {what}")
            write(value)
        for path, rounds in ((self.result_path, ROUNDS // 2), (self.job_directory / "job.json", ROUNDS // 4)):
            def write(value, path=path):
                path.write_text(json.dumps(value))
            check(rounds, path, json.loads(path.read_bytes()), write)
        check(ROUNDS // 4, self.journal_file, self.journal(), self.write_lines)

    def test_reports_of_a_direct_job(self):
        self.run_job(self.direct_job())
        self.check_reports()

    def test_reports_of_an_agent(self):
        self.run_agent_job()
        self.check_reports()

    def test_a_report_with_a_failure_code_of_a_later_version(self):
        self.run_steps(self.run_command("false"))
        result = json.loads(self.result_path.read_bytes())
        result["failure_code"] = "moon_phase"
        self.result_path.write_text(json.dumps(result))
        done = sba.run("--report", str(self.result_path))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"moon_phase", done.stdout)

    def check_resume(self, job, what, **options):
        self.result_path.unlink(missing_ok=True)
        outcome = self.run_job(job, "--resume", **options)
        self.assertNotEqual(outcome.exit, 3, (what, outcome.stderr))
        self.assertIsNotNone(outcome.result, what)
        self.assertIn(outcome.status, ("success", "failure", "timeout"), what)
        self.assertNotEqual(outcome.code, "internal_error", (what, outcome.message))
        self.assertNotIn(b"traceback", outcome.stderr, what)
        sba.result_validator().validate(outcome.result)
        if outcome.code == "schema_validation":
            self.assertRegex(outcome.message, r"^cannot resume: .*line \d+: ", what)
            self.assertEqual(outcome.exit, 2)

    def test_resume_of_a_direct_job(self):
        job = self.direct_job()
        self.run_job(job)
        lines = self.journal()
        for _ in range(ROUNDS):
            # Ended somewhere, or over.
            bad, what = mutated(lines[:self.chance.randrange(1, len(lines) + 1)], self.chance)
            self.write_lines(bad)
            self.check_resume(job, what)

    def test_a_journal_with_a_hole_of_a_terabyte(self):
        # A command of an earlier job can make one, where it can write the journal. Nobody reads it to its end.
        job = self.job(self.sh("test -e killed || { touch killed; sleep 60; }"))
        self.run_and_kill(job)
        os.truncate(self.journal_file, 1 << 40)
        outcome = self.run_job(job, "--resume", timeout=20)
        self.assertEqual((outcome.exit, outcome.code), (2, "interrupted"), "the result that stands is left as it is")
        self.assertRegex(outcome.events("job.refused")[0]["failure_message"], r"line \d: it is not JSON")
        self.assert_end(self.run_job(job, timeout=20), 0)

    def test_resume_with_a_start_that_is_no_time(self):
        job = self.direct_job()
        self.run_job(job)
        lines = self.journal()
        for wall in (-2**63, -1, 2**63 - 1, 10**17, 1.5, "x", None):
            lines[0]["started_wall"] = wall
            for end in (3, len(lines)):
                self.write_lines(lines[:end])
                self.check_resume(job, f"started_wall {wall}, {end} lines")

    def test_resume_of_an_agent(self):
        self.run_agent_job()
        job, lines = json.loads((self.job_directory / "job.json").read_bytes()), self.journal()
        for _ in range(ROUNDS // 2):
            bad, what = mutated(lines[:self.chance.randrange(1, len(lines) + 1)], self.chance)
            self.write_lines(bad)
            server = self.server(*[FINISH] * 5)
            self.check_resume(job, what, env={"OLLAMA_BASE_URL": server.url})


sba.main(__name__)
