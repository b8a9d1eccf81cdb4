# SPDX-License-Identifier: Apache-2.0
"""--report: a result as a page that people read, whatever a hostile job has put into it."""
import hashlib
import json
import os
import random
import re
import resource
import subprocess
import time
import unittest

import report_page
import sba
from report_page import Page
from sba import SandboxCase
from servers import status

EVIL = ("<script>document.title='run'</script></pre></details></style>--><img src=x onerror=alert(1)>\" onmouseover=\"alert(1)' "
        "&lt;b&gt; \x00\x07\x1b[31m\x7f \u202eevil\u2066 \u200b\U000e0041 end")


def evil_result(**changes):
    """A result with every string that a job decides on being hostile."""
    step = {"index": 0, "id": EVIL, "type": EVIL, "status": "failure", "started_at": EVIL, "duration_ms": 3, "exit_code": 1,
            "output": EVIL, "error": EVIL, "error_code": EVIL, "result": {"path": EVIL, "model": EVIL, "files": [{"path": EVIL}]}}
    diff = {**step, "index": 1, "id": "two", "type": "apply_unified_diff", "output": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-" + EVIL + "\n+" + EVIL}
    return {"protocol_version": EVIL, "job_id": EVIL, "task_id": EVIL, "status": "failure", "started_at": "2026-01-31T12:00:00.000Z",
            "finished_at": "2026-01-31T12:00:01.000Z", "duration_ms": 1000, "steps": [step, diff],
            "artifacts": [{"path": EVIL, "size_bytes": 1, "sha256": "<" * 64, "ref": EVIL}],
            "todo": {"total": 1, "done": 0, "items": [{"id": EVIL, "title": EVIL, "source": "requirement", "parent": EVIL,
                                                       "status": "in_progress", "note": EVIL}]},
            "resource_usage": {"cpu_time_ms": 1, "max_rss_bytes": 1}, "final_answer": EVIL, "inference_used": True,
            "inference": {"model": EVIL, "requests": 1, "prompt_tokens": 5, "completion_tokens": 6, "duration_ms": 7},
            "acceptance": [{"criterion": EVIL, "met": False, "evidence": "two: " + EVIL, "verified_by": "model"}],
            "confinement": {"writes": "landlock", "abi": 1, "writable": [EVIL], "partial": [EVIL]},
            "failure_code": "acceptance_unmet", "failure_message": EVIL, **changes}


def evil_journal(result):
    ids = {"job_id": result["job_id"], "task_id": result["task_id"]}
    call = {"id": "call-1", "name": EVIL, "arguments": {"argv": [EVIL, {"x": EVIL}], EVIL: EVIL}}
    lines = [{"event": "job", "job_sha256": "0", **ids}, {"event": "model.session", "model": EVIL, "context_length": 4096},
             {"event": "model.exchange", "at": "2026-01-31T12:00:00.500Z", "messages": [],
              "reply": {"content": EVIL, "thinking": EVIL, "tool_calls": [call], "prompt_tokens": 5, "duration_ms": 100}},
             {"event": "step.started", "index": 0, "id": EVIL, "type": EVIL},
             {"event": "model.exchange", "at": EVIL, "messages": [{"role": "tool", "step": EVIL, "tool_call_id": "call-1"}],
              "reply": {"content": "", "tool_calls": [{"name": "finish", "arguments": {EVIL: EVIL}}]}}]
    return "".join(json.dumps(line) + "\n" for line in lines)


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
        """A result in the job's directory, with a journal beside it."""
        self.result_path.write_text(result if isinstance(result, str) else json.dumps(result))
        if journal is not None:
            self.journal_file.write_text(journal)
        return self.result_path


class ReportTest(ReportCase):
    def test_a_direct_job_with_its_commands_and_diffs(self):
        self.put("a.txt", "one\n")
        diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
        self.run_job(self.job(self.step("apply_unified_diff", diff=diff),
                              self.step("run_command", command="sh", args=["-c", "echo printed; exit 3"]),
                              self.step("run_command", command="true")))
        page, source = self.page(self.result_path)
        self.assertEqual(page.headings, ["Job job-1", "Timeline", "Todo", "Steps", "Resources and origin"])
        self.assertIn('<span class="removed">-one\n</span><span class="added">+two\n</span>', source)
        self.assertIn("$ sh -c 'echo printed; exit 3'", page.text)
        self.assertIn("step_failed", page.text)
        self.assertIn("A step failed. The steps after it did not run.", page.text)
        self.assertIn("exit code 3", page.text)
        self.assertEqual(page.elements.count("details"), 4)
        self.assertEqual(page.open_details, 1, "the failed step is open, and nothing else")

    def test_commands_are_whole_and_a_shell_takes_them(self):
        words = ["printf", "%s\n", "it's", "a b", "$HOME", "x" * 1000, "", "last"]
        self.run_job(self.job(self.step("run_command", argv=words), self.step("run_command", argv=["A=b"])))
        page, _ = self.page(self.result_path)
        command = re.search(r"\$ (printf .*? last)", page.text, re.S)[1]
        printed = subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout.decode()
        self.assertEqual(printed, "\n".join(words[2:]) + "\n")
        self.assertIn("$ 'A=b'", page.text)

    def test_the_end_of_the_output_stands_under_the_outcome(self):
        self.run_job(self.job(self.step("run_command", command="true"), self.step("run_command", shell="seq 300; echo cause >&2; exit 3")))
        page, source = self.page(self.result_path)
        banner = source[source.index('class="why'):source.index("<main>")]
        self.assertIn('<a href="#s2">Step 2 (step-2, run_command) failed</a>', banner)
        self.assertIn("282\n", banner)
        self.assertNotIn("281\n", banner)
        self.assertIn("cause", banner)
        self.assertIn('<pre class="ends" tabindex="0">', source)

    def test_colours_of_a_command_are_left_out(self):
        script = r"printf 'a\033[1;31mred\033[0m \033[38;5;46mgreen\033[2Jcleared\n\033[42mon\033[K\n 50%%\r100%%\n'"
        self.run_job(self.job(self.step("run_command", shell=script)))
        _, source = self.page(self.result_path)
        self.assertIn('ared green<b class="byte">\\x1b</b>[2Jcleared\non\n100%\n', source)

    def test_the_mistakes_of_a_refused_job_are_a_list(self):
        self.run_job({**self.job(self.step("run_command")), "unknown": 1})
        _, source = self.page(self.result_path)
        items = re.search(r'<ul class="message mistakes">(.*?)</ul>', source)[1].split("</li>")
        self.assertGreaterEqual(len(items), 3)
        self.assertTrue(all(item.startswith("<li>/") for item in items[:-1]), items)

    def test_title_times_and_ids(self):
        self.run_job(self.job({**self.step("run_command", command="make", args=["the thing"]), "id": "build-it"}, self.step("list_tree", path=".")))
        page, source = self.page(self.result_path)
        self.assertIn("<title>✗ failed: make &#39;the thing&#39; and 1 more step (job job-1)</title>", source)
        result = json.loads(self.result_path.read_text())
        exact = result["started_at"]
        self.assertRegex(source, f'<time class="nowrap" datetime="{exact}" title="{exact}">\\d+ [A-Z][a-z][a-z] \\d{{4}}, {exact[11:19]} UTC</time>')
        row = re.search(r"<summary>.*?</summary>", source[source.index("<h2>Steps"):])[0]
        self.assertIn('<span class="quiet">build-it</span>', row)
        self.assertIn("Select a bar to jump to its step.", page.text)

    def test_a_job_that_runs_and_one_that_was_killed(self):
        script = "echo so far; touch begun; sleep 60"
        process = self.start(self.job(self.step("run_command", command="true"), self.step("run_command", shell=script)), env={"SBA_CONFINE": "off"})
        spool = self.job_directory / "running_output"
        sba.wait_for(lambda: spool.exists() and "so far" in spool.read_text(), "the output")
        time.sleep(1)
        page, source = self.page(self.result_path)
        self.assertIn("The job is running", page.text)
        self.assertIn("The job is still running.", page.text)
        self.assertRegex(page.text, r"UTC · has run for \d+\.\d s")
        self.assertRegex(page.text, r"Step step-2 is running, began at .* UTC, has run for \d")
        self.assertRegex(page.text, r"Step 2 \(step-2, run_command\) is running; it began at .* UTC and has run for [1-9]\d*\.\d s\.")
        self.assertIn("2 steps: 1 succeeded, 1 running", page.text)
        self.assertIn("so far\n", page.text)
        self.assertIn("$ " + script, page.text)
        self.assertIn("▸ running: true and 1 more step", source)
        process.kill()
        self.outcome_of(process)
        page, source = self.page(self.result_path)
        self.assertIn("The job was interrupted", page.text)
        self.assertIn("The runner was killed before the job was over.", page.text)
        self.assertIn("2 steps: 1 succeeded, 1 interrupted", page.text)
        self.assertRegex(page.text, r"Step 2 \(step-2, run_command\) was interrupted; it began at .* UTC and ran for at least ")
        self.assertRegex(page.text, r"Step step-2 was interrupted, began at .* UTC, ran for at least \d")
        self.assertIn("so far\n", page.text)

    def test_a_failed_step_among_many_has_room_and_says_where_the_rest_is(self):
        steps = [LargeTest.entry(i) for i in range(499)]
        output = "".join(f"{number:06d} of a log\n" for number in range(1, 300001))
        steps.append(LargeTest.entry(499, status="failure", output=output))
        self.write(evil_result(steps=steps))
        page, source = self.page(self.result_path)
        failed = source[source.index('id="s500"'):]
        self.assertGreater(failed.count("of a log\n"), (1 << 20) // 16 - 10, "1 MiB of it")
        self.assertIn("The page shows its beginning and its end. The rest is in the result: jq -r '.steps[499].output' result.json", page.text)
        self.assertIn("jq -r '.steps[0].output' result.json", page.text, "its share of the page is small")
        self.write(evil_result(steps=[LargeTest.entry(0, output="a\n", output_truncated=True, result={"stdout": "a\nb\n", "stderr": ""})]))
        self.assertIn("jq -r '.steps[0].result | .stdout, .stderr' result.json", self.page(self.result_path)[0].text)

    def test_the_job_must_be_the_very_one(self):
        self.run_job(self.job(self.step("run_command", command="true")))
        other = self.job(self.step("run_command", command="false"))
        (self.job_directory / "job.json").write_text(json.dumps(other))
        page, _ = self.page(self.result_path)
        self.assertNotIn("false", page.text)
        self.assertIn("The job file is not next to the result", page.text)
        self.assertIn("run_command step-1 true", page.text, "the todo list still says what it was")

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
        changes = {"counts": {"created": 0, "modified": 0, "deleted": 0, "mode_changed": 0, "type_changed": 0}, "files": [], "truncated": False}
        secret = self.root / "secret"
        secret.write_text("not of this job")
        digest = hashlib.sha256(secret.read_bytes()).hexdigest()
        for name in ("a\x00b", "../../secret"):
            artifacts = [{"path": name, "size_bytes": 15, "sha256": digest}]
            self.write(evil_result(workspace_changes={**changes, "patch": name}, artifacts=artifacts))
            self.assertNotIn("not of this job", self.page(self.result_path)[0].text)

    def test_a_secret_is_redacted_here_too(self):
        self.write(evil_result(final_answer="the token is correct-horse-battery, he said"))
        page, _ = self.page(self.result_path, env={"SBA_MCP_TOKEN": "correct-horse-battery"})
        self.assertIn("the token is [redacted], he said", page.text)

    def test_results_of_any_shape(self):
        for value in (None, 7, "x", [], {}, {"path": {}, "files": 7, "exit_code": [], "size_bytes": "x"}, {"files": [None, 7]}):
            result = evil_result()
            result["steps"][0]["result"] = value
            del result["steps"][0]["output"]
            self.page(self.write(result))


    def mutated(self, value):
        """The value with some of its parts replaced by others of any type."""
        if self.random.random() < 0.08:
            return self.random.choice([None, -1, 1.5, 1 << 62, "", "x", [], {}, [[]], {"a": 1}, True, "2026-13-99T99:99:99.999Z"])
        if isinstance(value, dict):
            return {key: self.mutated(part) for key, part in value.items()}
        return [self.mutated(part) for part in value] if isinstance(value, list) else value

    def test_journals_and_jobs_of_any_shape(self):
        self.random = random.Random(5)
        result = evil_result()
        lines = [json.loads(line) for line in evil_journal(result).splitlines()]
        direct = evil_result()
        del direct["inference"], direct["final_answer"]
        job = {"job_id": EVIL, "steps": [{"type": step["type"], "id": step["id"], "arguments": {"argv": ["a"], "path": "b", "diff": "c"}}
                                         for step in direct["steps"]]}
        for _ in range(60):
            journal = [lines[0]] + [self.mutated(line) for line in lines[1:]]
            self.page(self.write(result, "".join(json.dumps(line) + "\n" for line in journal)))
            self.journal_file.unlink()
            (self.job_directory / "job.json").write_text(json.dumps(self.mutated(job)))
            self.page(self.write(direct))
            (self.job_directory / "job.json").unlink()


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
        self.assertIn("/steps/0", self.refused(self.write(evil_result(steps=[7]))))
        self.refused(self.write(evil_result(unknown=1)))
        self.refused("-", stdin=b"\xff\xfe")
        self.refused("a", "b")

    def test_a_reader_that_goes(self):
        self.write(evil_result(steps=[LargeTest.entry(i) for i in range(200)]))
        done = sba.run_for_a_reader_that_goes("--report", self.result_path)
        self.assertIn(b"cannot write the report", done.stderr)
        self.assertEqual(done.returncode, 3)


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
                "started_at": "2026-01-31T12:00:00.%03dZ" % (index % 1000), "duration_ms": 1, "output": "o" * 16000, **changes}

    def test_five_thousand_steps(self):
        status = ("success", "failure")
        page, _ = self.measured(evil_result(steps=[self.entry(i, status=status[i % 2]) for i in range(5000)]))
        self.assertEqual(sum(re.fullmatch(r"s\d+", i) is not None for i in page.ids), 5000)
        self.assertLess(page.elements.count("rect"), 5000 * 2 + 2500)
        self.assertLessEqual(page.open_details, 21)

    def test_a_result_of_128_mebibytes(self):
        text = "line of output\n" * (64 * 1024 * 1024 // 15)
        page, memory = self.measured(evil_result(steps=[self.entry(0, output="x", result={"stdout": text}), self.entry(1, output=text)]))
        self.assertIn("bytes left out", page.text)
        if not sba.IS_DEV:
            self.assertLess(memory, 700 << 20)


def luminance(colour):
    channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class LooksTest(ReportCase):
    def test_contrast_of_text_in_light_and_dark(self):
        self.write(evil_result())
        _, source = self.page(self.result_path)
        themes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", source, re.S)[:2]]
        pairs = [(ink, on) for on in ("page", "card") for ink in
                 ("ink", "quiet", "link", "success", "failure", "timeout", "skipped", "model", "hunk")]
        pairs += [(kind, kind + "-wash") for kind in ("success", "failure", "timeout")]
        pairs += [("ink", "failure-wash"), ("ink", "timeout-wash"), ("quiet", "failure-wash"), ("quiet", "timeout-wash"),
                  ("quiet", "track"), ("ink", "track"), ("model", "track")]
        for theme in themes:
            for ink, on in pairs:
                light, dark = sorted((luminance(theme[ink]), luminance(theme[on])), reverse=True)
                self.assertGreaterEqual((light + 0.05) / (dark + 0.05), 4.5, (ink, on, theme["page"]))


@unittest.skipIf(sba.IS_DEV, "the release build writes the same page")
@unittest.skipUnless(report_page.chromium(), "no Chromium here")
class BrowserTest(ReportCase):
    """The page in headless Chromium. Screenshots are kept in SBA_SCREENSHOTS, where it names a directory."""

    def setUp(self):
        super().setUp()
        self.give(self.root)
        self.server = self.closing(status.Server(404))

    def browse(self, url, *flags):
        return report_page.browse(self.root, url, *flags, **sba.ordinary_user())

    def save(self, name, source):
        path = self.root / name
        path.write_text(source)
        return f"file://{path}"

    def hostile(self):
        """A page of a job that tries to have something fetched and run."""
        url = self.server.url
        evil = f"<img src='{url}'><link rel=stylesheet href='{url}'><script src='{url}'></script>" + EVIL
        text = json.dumps(evil_result()).replace(json.dumps(EVIL)[1:-1], json.dumps(evil)[1:-1])
        journal = evil_journal(evil_result()).replace(json.dumps(EVIL)[1:-1], json.dumps(evil)[1:-1])
        self.write(text, journal)
        return self.page(self.result_path)[1]

    def test_nothing_runs_and_nothing_is_fetched(self):
        dom = self.browse(self.save("page.html", self.hostile()), "--dump-dom")
        self.assertNotRegex(dom, r"<(script|img|link|iframe|object)[\s>]")
        self.assertNotIn("<title>run</title>", dom)
        for heading in ("Timeline", "Acceptance", "Todo", "Steps", "Model", "Artifacts", "Resources and origin"):
            self.assertIn(f"<h2>{heading}</h2>", dom)
        self.assertEqual(self.server.heads, [])

    def test_this_test_would_notice(self):
        self.browse(self.save("page.html", f"<!doctype html><img src='{self.server.url}'>"), "--dump-dom")
        self.assertIn("GET /status HTTP/1.1", self.server.heads[0])

    # How wide the framed page is, and whether the link in its URL opened what is folded.
    OPENED = """const target = page.querySelector("#s1");
        say.wide = page.documentElement.scrollWidth;
        say.opened = target && target.closest("details").open"""
    # Whether the last line of a long output can be seen, and how many ticks of the timeline are clipped.
    ENDS = """const long = page.querySelector("main pre.ends"), box = long.getBoundingClientRect(), last = long.lastChild.getBoundingClientRect();
        const strip = page.querySelector(".ticks").getBoundingClientRect();
        say.end = last.bottom <= box.bottom && last.top < box.top;
        const end = page.querySelector("pre.tail"), edge = end.getBoundingClientRect(), at = end.lastChild.getBoundingClientRect();
        say.tail = at.bottom <= edge.bottom && end.scrollHeight > end.clientHeight;
        say.clipped = [...page.querySelectorAll(".ticks span")].filter(tick => getComputedStyle(tick).display != "none")
          .filter(tick => { const at = tick.getBoundingClientRect(); return at.right > strip.right + 1 || at.left < strip.left - 1 }).length"""

    def framed(self, url, script=OPENED, width=360):
        """A page around another in a frame of a phone's width; the script says something of it in attributes of the outer body."""
        wrapper = f"""<!doctype html><body style="margin:0"><iframe style="border:0" width={width} height=1800 src="{url}"></iframe><script>
            onload = () => {{ const page = document.querySelector("iframe").contentDocument, say = document.body.dataset; {script} }}</script>"""
        return self.save("frame.html", wrapper)

    def test_a_phone_scrolls_in_one_direction_only_and_links_unfold(self):
        result = evil_result(failure_message="w" * 500, job_id="j" * 200)
        result["steps"][0]["status"] = "success"
        self.write(result, evil_journal(result))
        url = self.save("page.html", self.page(self.result_path)[1])
        dom = self.browse(self.framed(url + "#s1"), "--dump-dom")
        self.assertEqual(re.search(r'data-wide="(\d+)"', dom)[1], "360")
        self.assertIn('data-opened="true"', dom)
        self.assertIn('data-opened="false"', self.browse(self.framed(url), "--dump-dom"))

    def test_long_output_opens_at_its_end_and_no_tick_is_clipped(self):
        lines = "".join(f"line {i}\n" for i in range(1, 500))
        result = evil_result(duration_ms=61000, finished_at="2026-01-31T12:01:01.000Z")
        result["steps"][0].update(output=lines, started_at="2026-01-31T12:00:00.000Z", duration_ms=61000)
        result.update(steps=result["steps"][:1], failure_code="step_failed")
        self.write(result)
        url = self.save("page.html", self.page(self.result_path)[1])
        dom = self.browse(self.framed(url, self.ENDS), "--dump-dom")
        self.assertIn('data-end="true"', dom)
        self.assertIn('data-tail="true"', dom)
        self.assertIn('data-clipped="0"', dom)

    def test_long_titles_do_not_scroll(self):
        title = "run_command: " + " ".join(f"some/long/path/file_{i}.c" for i in range(99))
        items = [{"id": "1", "title": title, "source": "step", "parent": None, "status": "done", "note": None}]
        self.write(evil_result(todo={"total": 1, "done": 1, "items": items}, steps=[LargeTest.entry(0, status="failure")]))
        url = self.save("page.html", self.page(self.result_path)[1])
        for width in (360, 1000):
            dom = self.browse(self.framed(url, width=width), "--dump-dom")
            self.assertEqual(re.findall(r'data-wide="(\d+)"', dom), [str(width)])

    def test_screenshots(self):
        url, kept = self.save("page.html", self.hostile()), os.environ.get("SBA_SCREENSHOTS")
        sizes, shots = {"desk": (url, "--window-size=1200,1800"), "phone": (self.framed(url), "--window-size=500,1800")}, {}
        for name, (target, size) in sizes.items():
            for theme, flag in (("light", "1"), ("dark", "0")):
                shot = self.root / f"{name}-{theme}.png"
                self.browse(target, size, f"--blink-settings=preferredColorScheme={flag}", f"--screenshot={shot}")
                shots[name, theme] = shot.read_bytes()
                self.assertTrue(shots[name, theme].startswith(b"\x89PNG"))
                self.assertGreater(len(shots[name, theme]), 20000, "more than an empty page")
                if kept:
                    with open(os.path.join(kept, shot.name), "wb") as copy:
                        copy.write(shots[name, theme])
        self.assertEqual(len(set(shots.values())), 4)


if __name__ == "__main__":
    sba.main()
