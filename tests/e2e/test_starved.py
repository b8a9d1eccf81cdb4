# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out in the runner, from where it just starts to where the job fits: there is an honest result."""
import json
import os
import unittest

import sba
from sba import SandboxCase
from servers import mcp, model

MIB = 1 << 20
MOST, LIMITS = 64 * MIB, 12 if sba.LONG else 6
LINES, FILES = 100000, 300
STEP = int(os.environ.get("SBA_MEMORY_STEP", 64 << 10))  # bytes from one limit to the next
LEAST = {}  # bytes, by kind of limit


def large_patch():
    hunks = "".join(f"@@ -{i},1 +{i},1 @@\n-line {i}\n+LINE {i}\n" for i in range(1, LINES, 10))
    return f"--- a/lines\n+++ b/lines\n{hunks}"


@unittest.skipIf(sba.IS_DEV, "the sanitizers take memory as they like")
class StarvedTest(SandboxCase):
    def setUp(self):
        super().setUp()
        self.put("small", "small\n")

    def run_limited(self, job, kind, limit):
        for name in ("result.json", "journal.jsonl", "todo.json"):
            (self.job_directory / name).unlink(missing_ok=True)
        return self.run_job(job, wrapper=["prlimit", f"--{kind}={limit}"])

    def least(self, kind):
        """With less, the runner says why not, or the kernel cannot load it."""
        if kind not in LEAST:
            LEAST[kind] = self.search_least(kind)
        return LEAST[kind]

    def search_least(self, kind):
        low, high = 0, 16 * MIB
        while high - low > 16384:
            middle = (low + high) // 2
            outcome = self.run_limited(self.job(), kind, middle)
            if outcome.result:
                high = middle
            else:
                low = middle
                self.assertTrue(outcome.exit < 0 or (outcome.exit == 3 and b"memory" in outcome.stderr),
                                (outcome.exit, outcome.stderr))
        return high

    def check(self, outcome, job):
        self.assertIsNotNone(outcome.result, outcome.stderr)
        result = outcome.result
        sba.result_validator().validate(result)
        self.assertEqual(json.loads((self.job_directory / "result.json").read_text()), result)
        for step in result["steps"]:
            self.assertIn(step.get("error_code"), (None, "out_of_memory", "search_out_of_memory"), step)
        if outcome.exit == 0:
            self.assertEqual([step["status"] for step in result["steps"]], ["success"] * len(job["steps"]))
            return True
        self.assertEqual((outcome.exit, result["status"]), (1, "failure"), outcome.stderr)
        self.assertIn(result["failure_code"], ("internal_error", "step_failed"))
        self.assertRegex(result["failure_message"], "(?i)memory")
        return False

    def starve(self, *steps, before=lambda: None, after=lambda outcome: None):
        job = self.job(*steps, max_output_bytes=256 * MIB)
        for kind in ("as", "data"):
            least = self.least(kind)
            fitted = []
            for i in range(LIMITS):
                limit = int(least * (MOST / least) ** (i / (LIMITS - 1)))
                with self.subTest(kind=kind, limit=limit):
                    before()
                    outcome = self.run_limited(job, kind, limit)
                    fitted.append(self.check(outcome, job))
                    after(outcome)
            self.assertIn(False, fitted)
            self.assertTrue(fitted[-1], "the largest limit is no limit")

    def test_output(self):
        self.starve(self.sh("head -c 8388608 /dev/zero | tr '\\0' x"), self.read_file("small"))

    def test_read_file(self):
        self.put("large", b"z" * (8 * MIB))
        self.starve(self.read_file("large"), self.read_file("small"))

    def test_patch(self):
        # Of many files too: all of them or none.
        old = {"lines": "".join(f"line {i}\n" for i in range(1, LINES)), **{f"file{i}": "old\n" for i in range(FILES)}}
        new = {"lines": "".join(f"{'LINE' if i % 10 == 1 else 'line'} {i}\n" for i in range(1, LINES)),
               **{f"file{i}": "new\n" for i in range(FILES)}}
        others = "".join(f"--- a/file{i}\n+++ b/file{i}\n@@ -1 +1 @@\n-old\n+new\n" for i in range(FILES))

        def before():
            for name, content in old.items():
                self.put(name, content)

        def after(outcome):
            found = {path.name: path.read_text() for path in self.workspace.iterdir() if path.name != "small"}
            done = outcome.steps and outcome.steps[0]["status"] == "success"
            self.assertEqual(found == new, bool(done))
            self.assertTrue(done or found == old)
        self.starve(self.apply_diff(large_patch() + others), self.read_file("small"), before=before, after=after)

    def test_a_job_of_many_steps(self):
        self.starve(*[self.read_file("small") for _ in range(2500)])

    def test_each_limit_of_a_job_with_each_step_type(self):
        # Whatever the limit: a valid result, with all steps that finished.
        self.put("large", b"z" * (4 * MIB))
        for i in range(2000):
            (self.workspace / f"file{i}").write_text(f"line {i}\n")
        patch = "--- a/small\n+++ b/small\n@@ -1 +1,2 @@\n small\n+more\n"
        job = self.job(
            self.sh("head -c 8388608 /dev/zero | tr '\\0' x"), self.read_file("large"), self.write_file("a", "x" * MIB),
            self.step("list_tree", path="."), self.step("search_files", pattern="[0-9]"), self.apply_diff(patch),
            self.step("replace_in_file", path="a", old_text="x" * MIB, new_text="y"),
            self.step("ask_model", prompt="a word?"), self.step("call_tool", tool="echo", arguments={}),
            max_output_bytes=256 * MIB, inference={"allowed_models": ["m"]})
        answers = self.closing(model.Server({"models": {"m": {}}, "replies": [{"content": "word"}] * 10000}))
        gateway = self.closing(mcp.Server(tools={"echo": ({}, lambda _: mcp.text("echo"))}))
        self.environment = {"OLLAMA_BASE_URL": answers.url, "SBA_MCP_GATEWAY_URL": gateway.url}
        limit, fitted = self.least("as") + STEP, 0
        while fitted < 5 and limit < 2 * MOST:
            self.put("small", "small\n")
            with self.subTest(limit=limit):
                outcome = self.run_limited(job, "as", limit)
                fitted += self.check(outcome, job)
                self.assertEqual(self.finished(), [one["index"] for one in outcome.steps if one["status"] == "success"])
            limit += STEP
        self.assertEqual(fitted, 5)

    def finished(self):
        entries = [line["entry"] for line in self.journal() if line["event"] == "step.finished"]
        return [entry["index"] for entry in entries if entry["status"] == "success"]

    def test_tree_and_search(self):
        for i in range(5000):
            (self.workspace / f"file{i}").write_text(f"line {i}\n")
        self.starve(self.step("list_tree", path="."), self.step("search_files", pattern="[0-9]"))


sba.main(__name__)
