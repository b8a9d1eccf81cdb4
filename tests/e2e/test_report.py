# SPDX-License-Identifier: Apache-2.0
"""--report: a result as a page that people read, whatever a hostile job has put into it."""
import hashlib
import json
import re
import resource
import subprocess
import time
import xml.etree.ElementTree

import sba
from report_page import Page
from sba import SandboxCase

EVIL = ("<script>document.title='run'</script></pre></details></style>--><img src=x onerror=alert(1)>\" "
        "onmouseover=\"alert(1)' &lt;b&gt; \x00\x07\x1b[31m\x7f \u202eevil\u2066 \u200b\U000e0041 end")


def evil_result(**changes):
    """Every string that a job decides on is hostile."""
    step = {"index": 0, "id": EVIL, "type": EVIL, "status": "failure", "started_at": EVIL, "duration_ms": 3,
            "exit_code": 1, "output": EVIL, "error": EVIL, "error_code": EVIL,
            "result": {"path": EVIL, "model": EVIL, "files": [{"path": EVIL}]}}
    diff = {**step, "index": 1, "id": "two", "type": "apply_unified_diff",
            "output": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-" + EVIL + "\n+" + EVIL}
    return {"protocol_version": EVIL, "job_id": EVIL, "task_id": EVIL, "status": "failure",
            "started_at": "2026-01-31T12:00:00.000Z",
            "finished_at": "2026-01-31T12:00:01.000Z", "duration_ms": 1000, "steps": [step, diff],
            "artifacts": [{"path": EVIL, "size_bytes": 1, "sha256": "<" * 64, "ref": EVIL}],
            "todo": {"total": 1, "done": 0,
                     "items": [{"id": EVIL, "title": EVIL, "source": "requirement", "parent": EVIL,
                                "status": "in_progress", "note": EVIL}]},
            "resource_usage": {"cpu_time_ms": 1, "max_rss_bytes": 1}, "final_answer": EVIL, "inference_used": True,
            "inference": {"model": EVIL, "requests": 1, "prompt_tokens": 5, "completion_tokens": 6, "duration_ms": 7},
            "acceptance": [{"criterion": EVIL, "met": False, "evidence": "two: " + EVIL, "verified_by": "model"}],
            "confinement": {"writes": "landlock", "abi": 1, "writable": [EVIL], "partial": [EVIL]},
            "failure_code": "acceptance_unmet", "failure_message": EVIL, **changes}


def evil_journal(result):
    ids = {"job_id": result["job_id"], "task_id": result["task_id"]}
    call = {"id": "call-1", "name": EVIL, "arguments": {"argv": [EVIL, {"x": EVIL}], EVIL: EVIL}}
    lines = [{"event": "job", "job_sha256": "0", **ids},
             {"event": "model.session", "model": EVIL, "context_length": 4096},
             {"event": "model.exchange", "at": "2026-01-31T12:00:00.500Z", "messages": [],
              "reply": {"content": EVIL, "thinking": EVIL, "tool_calls": [call], "prompt_tokens": 5,
                        "duration_ms": 100}},
             {"event": "step.started", "index": 0, "id": EVIL, "type": EVIL},
             {"event": "model.exchange", "at": EVIL,
              "messages": [{"role": "tool", "step": EVIL, "tool_call_id": "call-1"}],
              "reply": {"content": "", "tool_calls": [{"name": "finish", "arguments": {EVIL: EVIL}}]}}]
    return "".join(json.dumps(line) + "\n" for line in lines)


def lacking(value):
    """The value without one of its members, for each of them."""
    is_object = isinstance(value, dict)
    for key in value if is_object else range(len(value)) if isinstance(value, list) else ():
        if is_object:
            yield {name: part for name, part in value.items() if name != key}
        for less in lacking(value[key]):
            yield {**value, key: less} if is_object else [*value[:key], less, *value[key + 1:]]


class ReportCase(SandboxCase):
    def report(self, *arguments, expected=0, **options):
        done = sba.run("--report", *arguments, cwd=self.root, **options)
        self.assertEqual(done.returncode, expected, done.stderr)
        return done

    def page(self, *arguments, **options):
        source = self.report(*arguments, **options).stdout.decode()
        self.assertNotIn("\x00", source)
        return Page(source), source

    def write(self, result, journal=None):
        self.result_path.write_text(result if isinstance(result, str) else json.dumps(result))
        if journal is not None:
            self.journal_file.write_text(journal)
        return self.result_path


class ReportTest(ReportCase):
    def test_a_direct_job_with_its_commands_and_diffs(self):
        self.put("a.txt", "one\n")
        diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
        self.run_steps(self.apply_diff(diff), self.run_command("sh", args=["-c", "echo printed; exit 3"]),
                       self.run_command("true"))
        page, source = self.page(self.result_path)
        self.assertEqual(page.headings, ["Job job-1", "Timeline", "Todo", "Steps", "Resources and origin"])
        self.assertIn('<span class="removed">-one\n</span><span class="added">+two\n</span>', source)
        self.assert_says(page.text, "$ sh -c 'echo printed; exit 3'", "step_failed",
                         "A step failed. The steps after it did not run, except those that run always.", "exit code 3")
        self.assertEqual(page.elements.count("details"), 4, "three steps and the todo list")
        self.assertEqual(page.open_details, 1, "the failed step is open, and nothing else")

    def test_commands_are_whole_and_a_shell_takes_them(self):
        words = ["printf", "%s\n", "it's", "a b", "$HOME", "x" * 1000, "", "last"]
        self.run_steps(self.step("run_command", argv=words), self.step("run_command", argv=["A=b"]))
        page, _ = self.page(self.result_path)
        command = re.search(r"\$ (printf .*? last)", page.text, re.S)[1]
        printed = subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout.decode()
        self.assertEqual(printed, "\n".join(words[2:]) + "\n")
        self.assertIn("$ 'A=b'", page.text)

    def test_the_end_of_the_output_stands_under_the_outcome(self):
        self.run_steps(self.run_command("true"), self.sh("seq 300; echo cause >&2; exit 3"))
        page, source = self.page(self.result_path)
        banner = source[source.index('class="why'):source.index("<main>")]
        self.assert_says(banner, '<a href="#s2">Step 2 (step-2, run_command) failed</a>', "282\n")
        self.assertNotIn("281\n", banner)
        self.assertIn("cause", banner)
        self.assertIn('<pre class="ends" tabindex="0">', source)

    def test_colours_of_a_command_are_left_out(self):
        script = r"printf 'a\033[1;31mred\033[0m \033[38;5;46mgreen\033[2Jcleared\n\033[42mon\033[K\n 50%%\r100%%\n'"
        self.run_steps(self.sh(script))
        _, source = self.page(self.result_path)
        self.assertIn('ared green<b class="byte">\\x1b</b>[2Jcleared\non\n100%\n', source)

    def test_a_job_that_runs_and_one_that_was_killed(self):
        script = "echo so far; touch begun; sleep 60"
        process = self.start(self.job(self.run_command("true"), self.sh(script)), env={"SBA_CONFINE": "off"})
        sba.wait_for(lambda: self.result_path.exists() and '"so far' in self.result_path.read_text(), "the output")
        time.sleep(1)
        page, source = self.page(self.result_path)
        self.assert_says(page.text, "The job is running", "The job is still running.")
        self.assertRegex(page.text, r"UTC · has run for [1-9]")
        self.assertRegex(page.text, r"Step step-2 is running, began at .* UTC, has run for \d")
        self.assert_says(page.text, "Step 2 (step-2, run_command) is running", "2 steps: 1 succeeded, 1 running",
                         "so far\n", "$ " + script)
        self.assertIn("▸ run_command: true", source)
        done = sba.run("--report", str(self.result_path), "--format", "markdown")
        self.assertRegex(done.stdout.decode(), r"^## ▸ job .* is running\n\n[0-9.]+ m?s, 2 steps\n\n###")
        process.kill()
        self.outcome_of(process)
        page, source = self.page(self.result_path)
        self.assert_says(page.text, "The job was interrupted", "The runner was killed before the job was over.",
                         "2 steps: 1 succeeded, 1 interrupted", "Step 2 (step-2, run_command) was interrupted")
        self.assertRegex(page.text, r"Step step-2 was interrupted, began at .* UTC, ran for at least \d")
        self.assertIn("so far\n", page.text)

    def test_the_job_must_be_the_very_one(self):
        self.run_steps(self.run_command("true"))
        other = self.job(self.run_command("false"))
        (self.job_directory / "job.json").write_text(json.dumps(other))
        page, _ = self.page(self.result_path)
        self.assertNotIn("false", page.text)
        self.assertIn("The job file is not next to the result", page.text)
        self.assertIn("run_command: true", page.text, "the todo list still says what it was")

    def test_a_result_on_stdin(self):
        page, _ = self.page("-", stdin=json.dumps(evil_result()).encode())
        self.assertIn("Steps", page.headings)

    def test_the_journal_of_another_job_is_left_alone(self):
        self.write(evil_result(job_id="mine"), evil_journal(evil_result(job_id="other")))
        page, _ = self.page(self.result_path)
        self.assertIn("belongs to another job", page.text)
        self.assertEqual([i for i in page.ids if i.startswith("t")], [])

    def test_half_a_journal_counts_as_far_as_it_goes(self):
        whole = evil_journal(evil_result())
        for cut, said in ((len(whole) - 5, "its last line is incomplete"), (None, "line 6")):
            journal = whole[:cut] if cut else whole + "{]\n" + whole
            self.write(evil_result(), journal)
            page, _ = self.page(self.result_path)
            self.assertIn(said, page.text)
            self.assertIn("t1", page.ids)

    def test_turns_lead_to_their_steps(self):
        self.write(evil_result(), evil_journal(evil_result()))
        page, _ = self.page(self.result_path)
        self.assertIn("→ step 1", page.text)
        self.assertIn("Model", page.headings)
        self.assertLessEqual(set(page.links), set(page.ids))


class HostileTest(ReportCase):
    def test_every_byte_of_a_job_is_text(self):
        self.write(evil_result(), evil_journal(evil_result()))
        page, source = self.page(self.result_path)
        for character in "\x00\x07\x1b\x7f\u202e\u2066\u200b\U000e0041":
            self.assertNotIn(character, source)
        shown = EVIL.replace("\x00", "\\x00").replace("\x07", "\\x07").replace("\x1b", "\\x1b").replace("\x7f", "\\x7f")
        for character in "\u202e\u2066\u200b\U000e0041":
            shown = shown.replace(character, "\\u{%x}" % ord(character))
        self.assertGreater(page.text.count(shown), 20)
        self.assertIn("default-src 'none'; style-src 'unsafe-inline'", source.replace("&#39;", "'"))

    def test_a_title_has_no_markup(self):
        self.write(evil_result())
        _, source = self.page(self.result_path)
        title = re.search("<title>(.*?)</title>", source)[1]
        self.assertNotIn("<", title)
        self.assertIn("\\x07\\x1b[31m", title)

    def test_a_patch_by_another_name_is_left_alone(self):
        changes = {"counts": {"created": 0, "modified": 0, "deleted": 0, "mode_changed": 0, "type_changed": 0},
                   "files": [], "truncated": False}
        secret = self.root / "secret"
        secret.write_text("not of this job")
        digest = hashlib.sha256(secret.read_bytes()).hexdigest()
        for name in ("a\x00b", "../../secret"):
            artifacts = [{"path": name, "size_bytes": 15, "sha256": digest}]
            self.write(evil_result(workspace_changes={**changes, "patch": name}, artifacts=artifacts))
            self.assertNotIn("not of this job", self.page(self.result_path)[0].text)


class BadInputTest(ReportCase):
    def refused(self, *arguments, **options):
        done = self.report(*arguments, expected=2, **options)
        self.assertEqual(done.stdout, b"")
        self.assertRegex(done.stderr.decode(), r"^cynode-sba: [^\n]+\n$")
        return done.stderr.decode()

    def test_what_is_no_result_is_refused(self):
        self.assertIn("cannot read the result", self.refused(self.root / "missing"))
        self.assertIn("cannot read the result", self.refused(self.root))
        self.assertIn("is not a result: line 1, column 1", self.refused(self.write("")))
        self.assertIn("line 1", self.refused(self.write('{"steps":')))
        self.assertIn("not a result of cynode-sba", self.refused(self.write("[]")))
        self.assertIn("/steps/0: expected an object, got false", self.refused(self.write(evil_result(steps=[False]))))
        self.assertIn("/steps/0", self.refused(self.write(evil_result(steps=[7]))))
        self.refused(self.write(evil_result(unknown=1)))

    def test_the_use_of_a_model_may_lack_every_member(self):
        for used in ({}, {"source": "worker"}, {"prompt_tokens": 3}):
            self.page(self.write(evil_result(inference=used)))

    def test_a_code_without_a_message(self):
        page = self.report(self.write(evil_result(failure_code="interrupted", failure_message=None)), expected=0)
        self.assertEqual(page.stderr, b"")

    def test_what_is_no_file_is_refused(self):
        self.refused("-", stdin=b"\xff\xfe")
        self.refused("a", "b")


class LargeTest(ReportCase):
    """Bounds are generous: they tell a page that grows with its input from one that does not."""

    def measured(self, result):
        self.write(result)
        begun = time.monotonic()
        page, source = self.page(self.result_path)
        self.assertLess(time.monotonic() - begun, 60)
        self.assertLess(len(source), 20 << 20)
        return page, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024

    @staticmethod
    def entry(index, **changes):
        return {"index": index, "id": f"step-{index + 1}", "type": "run_command", "status": "success",
                "started_at": "2026-01-31T12:00:00.%03dZ" % (index % 1000), "duration_ms": 1, "output": "o" * 16000,
                **changes}

    def test_five_thousand_steps(self):
        status = ("success", "failure")
        page, _ = self.measured(evil_result(steps=[self.entry(i, status=status[i % 2]) for i in range(5000)]))
        self.assertEqual(sum(re.fullmatch(r"s\d+", i) is not None for i in page.ids), 5000)
        self.assertLess(page.elements.count("rect"), 5000 * 2 + 2500)
        self.assertLessEqual(page.open_details, 21)

    def test_a_result_of_128_mebibytes(self):
        text = "line of output\n" * (64 * 1024 * 1024 // 15)
        page, memory = self.measured(evil_result(steps=[self.entry(0, output="x", result={"stdout": text}),
                                                        self.entry(1, output=text)]))
        self.assertIn("bytes left out", page.text)
        if not sba.IS_DEV:
            self.assertLess(memory, 700 << 20)


class OtherForms(SandboxCase):
    def report(self, result, form):
        self.put(self.result_path, json.dumps(result))
        done = sba.run("--report", str(self.result_path), "--format", form)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def results(self):
        """One of a job with a step that failed, one that was skipped, and checks."""
        entry = {"started_at": "2026-01-31T12:00:00.000Z", "duration_ms": 1500, "type": "run_command"}
        steps = [{**entry, "index": 0, "id": "build", "status": "failure", "error": "it ended with exit code 2",
                  "error_code": "exit_status", "output": "a & b\n]]>"},
                 {**entry, "index": 1, "id": "test", "status": "skipped"},
                 {**entry, "index": 2, "id": "check-3", "status": "success", "check": 1}]
        acceptance = [{"criterion": "it builds", "met": True, "evidence": "check-3", "verified_by": "check"},
                      {"criterion": "it runs", "met": None, "evidence": "no time was left", "verified_by": None},
                      {"criterion": "it is fast", "met": False, "evidence": "check-4", "verified_by": "check"}]
        return evil_result(steps=steps, acceptance=acceptance, failure_code="step_failed")

    def test_junit_has_a_case_for_each_step_and_criterion(self):
        (suite,) = xml.etree.ElementTree.fromstring(self.report(self.results(), "junit"))
        self.assertEqual({name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")},
                         {"tests": "5", "failures": "2", "errors": "0", "skipped": "2"})
        cases = [(case.get("classname"), case.get("name"), [(part.tag, part.get("type")) for part in case])
                 for case in suite]
        self.assertEqual(cases, [
            ("steps", "build run_command", [("failure", "exit_status")]),
            ("steps", "test run_command", [("skipped", None)]),
            ("acceptance", "it builds", []), ("acceptance", "it runs", [("skipped", None)]),
            ("acceptance", "it is fast", [("failure", "acceptance_unmet")])])
        self.assertEqual(suite[0][0].text, "a & b\n]]>")

    def test_junit_says_why_a_job_failed_that_no_step_failed(self):
        refused = evil_result(steps=[], acceptance=[], failure_code="schema_validation",
                              failure_message="/steps: is missing")
        (suite,) = xml.etree.ElementTree.fromstring(self.report(refused, "junit"))
        self.assertEqual((suite.get("errors"), suite[0][0].tag, suite[0][0].get("message")),
                         ("1", "error", "/steps: is missing"))

    def test_junit_skips_a_tolerated_failure_and_says_why_as_far_as_it_is_known(self):
        step = {"index": 0, "id": "a", "type": "run_command", "status": "failure", "tolerated": True,
                "started_at": "", "duration_ms": 1}
        for entry, why in (({**step, "error": "no"}, "tolerated: no"), (step, "tolerated: failure")):
            result = evil_result(steps=[entry], acceptance=[], failure_code=None)
            (suite,) = xml.etree.ElementTree.fromstring(self.report(result, "junit"))
            self.assertEqual([(part.tag, part.get("message")) for part in suite[0]], [("skipped", why)])

    def test_whatever_a_job_says_stays_text(self):
        for result in (evil_result(), evil_result(failure_code=EVIL), self.results()):
            xml.etree.ElementTree.fromstring(self.report(result, "junit"))
            shown = self.report(result, "markdown")
            outside = re.sub(r"(`{3,})[^\n]*\n.*?\n\1(?=\n)", "", shown, flags=re.S)
            outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
            self.assert_lacks(outside, "<script", "onerror", "alert", "\x1b", "\u202e")
            self.assertNotIn("\x1b", shown)

    def test_markdown_sums_a_job_up(self):
        shown = self.report(self.results(), "markdown")
        self.assertIn("failed: step_failed\n", shown.splitlines(keepends=True)[0])
        self.assertIn("\n```\n\n### Steps\n", shown)
        bare = self.report({**self.results(), "failure_message": None}, "markdown")
        self.assertIn(" s, 3 steps\n\n### Steps\n", bare)
        self.assert_says(shown, "| ✗ | `run_command build` |  | 1.5 s |",
                         "### Output of `build`\n\n```\na & b\n]]>\n```\n",
                         "| – | `it runs` | not checked | `no time was left` |")
        self.assertNotIn("more\n", shown)
        steps = self.run_steps(*[self.read_file("missing") for _ in range(201)])
        self.assertIn("\n... and 1 more\n", self.report(steps.result, "markdown"))
        longer = self.report(evil_result(final_answer="```\n<b>\n````"), "markdown")
        self.assertIn("\n`````\n```\n<b>\n````\n`````\n", longer)

    def test_a_result_that_lacks_a_member_has_a_report_or_is_refused(self):
        report = {"answer": "a", "model": "m", "prompt_tokens": 1, "cost_usd": 0.5}
        check = {"index": 0, "id": "a", "type": "run_command", "status": "failure", "tolerated": True, "check": 1,
                 "started_at": "", "duration_ms": 1, "error": "no", "error_code": "x", "output": "o",
                 "result": {"stdout": "o", "stderr": "", "report": report}}
        file = {"path": "a", "action": "created", "size_bytes": 1}
        changes = {"counts": {"created": 1}, "files": [file], "truncated": False}
        for less in lacking(evil_result(steps=[check], workspace_changes=changes)):
            self.result_path.write_text(json.dumps(less))
            for form in ("html", "markdown", "junit"):
                done = sba.run("--report", str(self.result_path), "--format", form)
                self.assertIn(done.returncode, (0, 2), done.stderr.decode())

    def test_a_form_that_does_not_exist_is_refused(self):
        for arguments, words in ((["--report", "x", "--format", "xml"], b"html, junit, markdown"),
                                 (["--format", "junit"], b"requires --report")):
            done = sba.run(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


sba.main(__name__)
