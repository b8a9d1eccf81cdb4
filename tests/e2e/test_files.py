# SPDX-License-Identifier: Apache-2.0
"""The file steps from outside; and what stands after a disk that is full or fails: all of the change or nothing."""
import base64
import hashlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import time

import sba
from diffs import state

SCRIPT = pathlib.Path(__file__).with_name("change.lua")


class Files(sba.SandboxCase):
    def test_no_step_holds_a_descriptor_until_it_is_collected(self):
        self.put("x", "1\n")
        self.put("long/x", "1\n" * 600000)
        steps = [self.step("list_tree"), self.step("search_files", pattern="1", max_matches=9), self.read_file("x"),
                 self.read_file("long/x"), self.run_command("/bin/true"), self.write_file("y", "1"),
                 self.apply_diff("--- x\n+++ x\n@@ -1 +1 @@\n-1\n+1\n\\ No newline at end of file\n", dry_run=True)]
        for step in steps:
            with self.subTest(step["type"]):
                job = self.job(*[step] * 100, max_output_bytes=1 << 21)
                outcome = self.run_job(job, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
                self.assertEqual((outcome.exit, outcome.message), (0, None))

    def test_write_then_read(self):
        content = bytes(range(256))
        outcome = self.assert_end(self.run_steps(
            self.write_file("d/bytes", base64.b64encode(content).decode(), encoding="base64", mode="0750"),
            self.read_file("d/bytes"),
            self.write_file("d/text", "äöü\n"),
            self.write_file("d/text", "€", append=True),
            self.read_file(f"{self.workspace}/d/text", max_bytes=9),
            self.step("list_tree", path="d")), 0)
        steps = outcome.steps
        self.assertEqual((self.workspace / "d/bytes").read_bytes(), content)
        self.assertEqual((self.workspace / "d/bytes").stat().st_mode & 0o7777, 0o750)
        self.assertEqual(list(steps[0]["result"]), ["path", "size_bytes", "sha256", "created"])
        self.assertEqual(steps[0]["result"]["sha256"], hashlib.sha256(content).hexdigest())
        self.assertEqual(base64.b64decode(steps[1]["result"]["content"]), content)
        self.assertEqual(steps[1]["result"]["encoding"], "base64")
        self.assertFalse(steps[3]["result"]["created"])
        self.assertEqual(steps[4]["result"]["content"], "äöü\n")
        self.assertTrue(steps[4]["result"]["truncated"])
        tree = steps[5]["result"]
        self.assertEqual(list(tree), ["name", "type", "size_bytes", "mode", "children", "truncated"])
        self.assertEqual([child["name"] for child in tree["children"]], ["bytes", "text"])

    def sparse(self, size):
        with open(self.put("sparse"), "wb") as file:
            file.truncate(size)

    def test_a_file_without_end_obeys_the_deadline(self):
        # To its second line it would have to be read whole.
        self.sparse(10 << 40)
        begun = time.monotonic()
        self.assert_end(self.run_steps(self.read_file("sparse", start_line=2), max_runtime_seconds=1), 124, "timeout")
        self.assertLess(time.monotonic() - begun, 30)

    def test_what_is_read_follows_what_was_asked(self):
        self.sparse(10 << 40)
        self.put("small", "one\ntwo\n")
        done = self.assert_end(self.run_steps(
            self.read_file("sparse", max_bytes=10), self.read_file("sparse", max_bytes=10, offset_bytes=5 << 40),
            self.read_file("sparse", offset_bytes=(10 << 40) - 5), self.read_file("small", max_bytes=4),
            self.read_file("small", max_bytes=8), self.read_file("small", offset_bytes=4),
            self.read_file("small", end_line=1)), 0)
        results = [step["result"] for step in done.steps]
        self.assertEqual([(len(result["content"]), result["truncated"], "sha256" in result, "total_lines" in result)
                          for result in results],
                         [(10, True, False, False), (10, True, False, False), (5, False, False, False),
                          (4, True, False, False),
                          (8, False, True, True), (4, False, False, False), (4, False, True, True)])
        self.assert_end(self.run_steps(self.read_file("sparse"), max_output_bytes=1000), 1, "constraint_violation")

    def test_appends_in_place(self):
        # Nothing but what comes is read or written: a file with a hole of 10 TiB takes a line.
        self.sparse(10 << 40)
        before = self.put("small", "one\n", mode=0o600).stat()
        done = self.assert_end(self.run_steps(self.write_file("sparse", "end\n", append=True),
                                              self.read_file("sparse", offset_bytes=(10 << 40) - 1),
                                              self.write_file("small", "two\n", append=True),
                                              self.write_file("small", "", append=True, mode="0640")), 0)
        large, read, small, empty = (step["result"] for step in done.steps)
        self.assertEqual((large["size_bytes"], "sha256" in large), ((10 << 40) + 4, False))
        self.assertEqual(read["content"], "\0end\n")
        self.assertEqual((small["sha256"], small["created"]), (hashlib.sha256(b"one\ntwo\n").hexdigest(), False))
        self.assertEqual((empty["sha256"], self.text("small")), (small["sha256"], "one\ntwo\n"))
        after = (self.workspace / "small").stat()
        self.assertEqual((after.st_ino, after.st_mode & 0o777), (before.st_ino, 0o640))

    def test_a_tree_deeper_than_any_path_is_cut_and_searched(self):
        here = os.getcwd()
        os.chdir(self.workspace)
        try:
            for _ in range(10000):
                os.mkdir("d")
                self.give(pathlib.Path("d"))
                os.chdir("d")
        finally:
            os.chdir(here)
            self.addCleanup(subprocess.run, ["rm", "-rf", str(self.workspace / "d")], check=False)
        outcome = self.assert_end(self.run_steps(self.step("list_tree"), self.step("search_files", pattern="x")), 0)
        self.assertTrue(outcome.steps[0]["result"]["truncated"])

    def test_a_directory_that_cannot_be_read_is_listed_without_children(self):
        self.put("closed/file", "x")
        self.put("open/file", "x")
        os.chmod(self.workspace / "closed", 0)
        self.addCleanup(os.chmod, self.workspace / "closed", 0o755)
        outcome = self.assert_end(self.run_steps(self.step("list_tree")), 0)
        closed, opened = outcome.steps[0]["result"]["children"]
        self.assertNotIn("children", closed)
        self.assertEqual(opened["children"][0]["name"], "file")
        outcome = self.run_steps(self.step("list_tree", path="closed"))
        self.assertEqual(outcome.steps[0]["error_code"], "permission_denied")


@sba.wants("strace")
class Faults(sba.SandboxCase):
    """A system call that fails, each in turn: all or nothing, and no temporary file stays behind a failure."""

    def originals(self):
        self.clean()
        for path in ("a", "b", "sub/c", "directory/gone", "file", "tree/x/y", "tree/z", "mode"):
            self.put(path, f"old {path}")
        os.symlink("a", self.workspace / "link")
        self.give(self.workspace / "link")

    def change(self, *injections):
        """The change's last word, and whether the last fault came to pass."""
        log = self.job_directory / "strace"
        names = [injection.split(":")[0] for injection in injections]
        options = [word for injection in injections for word in ("-e", "inject=" + injection)]
        strace = sba.strace(",".join(names) or "none", "-f", *options, log=log)
        done = subprocess.run([*strace, sba.BINARY, "--lua", str(SCRIPT), str(self.workspace)],
                              capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, timeout=120,
                              **sba.ordinary_user())
        # 3: it was the word itself that could not be written
        self.assertEqual(done.returncode, 0 if done.stdout else 3, done.stdout + done.stderr)
        lines = log.read_text(errors="replace").splitlines()
        hit = any(f" {name}(" in line and "(INJECTED)" in line for name in names[-1:] for line in lines)
        return done.stdout.strip(), hit

    def sweep(self, call, error, before=(), stays=(), code=None, limit=80):
        """Lets the first, the second, ... call fail until there is none left to fail; gives how many were met. A fault
        while the old is swept up leaves the change whole, temporary files and the directories in stays aside."""
        self.originals()
        old = state(self.workspace)
        self.assertEqual(self.change(*before)[0], "done")
        new = state(self.workspace)
        self.assertNotEqual(old, new)
        failures = 0
        for number in range(1, limit):
            self.originals()
            word, hit = self.change(*before, f"{call}:error={error}:when={number}")
            if not hit:
                self.assertGreaterEqual(failures, 1 if code else 0)
                return number - 1
            with self.subTest(call=call, error=error, number=number, before=before):
                there = state(self.workspace)
                if word in ("done", ""):  # "": it was the word itself that could not be written
                    there = {name: entry for name, entry in there.items() if ".sba-" not in name and name not in stays}
                    self.assertEqual(there, new)
                else:
                    failures += 1
                    self.assertEqual(word, code or word)
                    self.assertEqual(there, old)
        self.fail(f"{call} was called {limit} times")

    def test_without_descriptors_what_cannot_be_put_back_is_kept_beside_its_place(self):
        # From some moment on there is none left; what was staged goes again.
        words = set()
        for number in range(1, 80, 1 if sba.LONG else 3):
            self.originals()
            old = state(self.workspace)
            word, _ = self.change(f"openat2:error=EMFILE:when={number}+")
            words.add(word)
            beside = {name: entry for name, entry in state(self.workspace).items() if ".sba-" in name}
            for entry in beside.values():
                self.assertIn(entry, old.values(), (number, word))
            if word == "done":
                self.assertEqual(beside, {}, number)
        self.assert_says(words, "too_many_files", "done")

    def test_one_call_fails_and_nothing_is_done(self):
        for call, error, least in (("renameat2", "EIO", 3), ("renameat", "EIO", 7), ("mkdirat", "ENOSPC", 3),
                                   ("fchmod", "EIO", 3), ("linkat", "EIO", 3)):
            self.assertGreaterEqual(self.sweep(call, error), least)
        self.assertEqual(self.sweep("symlinkat", "ENOSPC"), 1)

    def test_a_removal_of_what_was_set_aside_fails_and_all_is_done(self):
        self.assertGreater(self.sweep("unlinkat", "EIO", stays=["directory"]), 5)

    def test_a_rename_fails_where_there_are_no_links(self):
        # As on FAT.
        self.assertGreater(self.sweep("renameat", "EIO", ["renameat2:error=EINVAL", "linkat:error=EPERM"]), 10)

    def test_a_disk_that_is_full_or_fails_while_files_are_staged(self):
        for error, code in (("ENOSPC", "no_space"), ("EDQUOT", "no_space"), ("EIO", "io_error")):
            self.assertGreaterEqual(self.sweep("write", error, code=code), 5)


class OwnFiles(sba.SandboxCase):
    """The job directory is in the workspace, or is the workspace."""
    NAMES = ("job.json", "result.json", "journal.jsonl", "todo.json", ".result.json.tmp")

    def own(self, *names):
        for path in self.workspace.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.job_directory = self.folder(self.workspace.joinpath(*names))
        self.result_path = self.job_directory / "result.json"
        self.journal_file = self.job_directory / "journal.jsonl"

    def test_they_are_neither_listed_nor_searched_nor_changes(self):
        for names in ((), ("job",)):
            self.own(*names)
            self.put("result.json.old", "job-1\n"), self.put("sub/result.json", "job-1\n")
            (self.workspace / "link").symlink_to((self.job_directory / "journal.jsonl").relative_to(self.workspace))
            say = self.sh("echo job-1; echo more >> result.json.old; echo x > $CYNODE_ARTIFACTS_DIR/x; "
                          "mkdir -p artifacts; : > artifacts/y")
            looking = self.step("search_files", pattern="job-1|step-1|succe")
            done = self.assert_end(self.run_steps(say, self.step("list_tree"), looking, report_changes=True), 0)
            tree, search = (step["result"] for step in done.steps[1:])
            listed = {directory["name"]: {entry["name"] for entry in directory.get("children", [])}
                      for directory in (tree, *tree["children"])}
            self.assertLessEqual({"result.json.old", "sub", "link", "artifacts", "y"}, set().union(*listed.values()))
            self.assertEqual((listed["."] | listed.get("job", set())) & set(self.NAMES), set())
            self.assertEqual({match["path"] for match in search["matches"]}, {"result.json.old", "sub/result.json"})
            changed = {file["path"] for file in done.result["workspace_changes"]["files"]}
            self.assertEqual(changed, {"result.json.old", "artifacts/y"} if names else {"result.json.old"})

    def test_file_steps_on_them_are_refused(self):
        for names in ((), ("job",)):
            self.own(*names)
            at = "/".join((*names, "")) if names else ""
            (self.workspace / "link").symlink_to(f"{at}journal.jsonl")
            gone = f"--- a/{at}job.json\n+++ /dev/null\n@@ -1 +0,0 @@\n-{{}}\n"
            new = f"--- /dev/null\n+++ b/{at}todo.json\n@@ -0,0 +1 @@\n+[]\n"
            moved = f"diff --git a/{at}job.json b/x\nsimilarity index 100%\nrename from {at}job.json\nrename to x\n"
            for step in (self.read_file(f"{at}result.json"), self.read_file("link"),
                         self.write_file(f"{at}result.json", "x"), self.write_file("link", "x"),
                         self.write_file(f"{at}.result.json.tmp", "x"), self.step("list_tree", path=f"{at}job.json"),
                         self.step("replace_in_file", path=f"{at}job.json", old_text="job-1", new_text="job-2"),
                         self.step("search_files", path=f"{at}journal.jsonl", pattern="x"),
                         self.apply_diff(gone), self.apply_diff(new), self.apply_diff(moved)):
                outcome = self.run_steps(step)
                entry = outcome.steps[0]
                self.assertEqual((outcome.exit, entry["error_code"]), (1, "permission_denied"), (step, entry))
                self.assertIn("written by the runner alone", entry["error"])

    def test_a_result_json_elsewhere_is_an_ordinary_file(self):
        outcome = self.assert_end(self.run_steps(self.write_file("result.json", "x"), self.read_file("result.json"),
                                                 self.step("list_tree")), 0)
        self.assertEqual([child["name"] for child in outcome.steps[2]["result"]["children"]], ["result.json"])


class FullDisk(sba.SandboxCase):
    def test_a_write_or_an_append_that_finds_no_room_is_taken_back(self):
        self.mount(self.workspace, "64k")
        self.put("file", "old")
        before = state(self.workspace)
        for arguments in ({"path": "file"}, {"path": "file", "append": True}, {"path": "deep/er/new"}):
            outcome = self.run_steps(self.step("write_file", content="x" * 100000, **arguments))
            self.assert_end(outcome, 1, "step_failed")
            self.assertEqual(outcome.steps[0]["error_code"], "no_space")
            self.assertEqual(state(self.workspace), before)


class Search(sba.SandboxCase):
    def search(self, **arguments):
        limits = ("max_runtime_seconds", "max_output_bytes")
        fields = {name: arguments.pop(name) for name in limits if name in arguments}
        return self.run_steps(self.step("search_files", **arguments), **fields)

    def found(self, **arguments):
        outcome = self.assert_end(self.search(**arguments), 0)
        matches = outcome.steps[0]["result"]["matches"]
        return [(match["path"], match["line"], match["text"]) for match in matches]

    def test_unreadable_files_are_passed_over(self):
        self.put("a", "x\n")
        self.put("b", "x\n", mode=0)
        outcome = self.search(pattern="x")
        step = outcome.steps[0]
        self.assertEqual([match["path"] for match in step["result"]["matches"]], ["a"])
        self.assertIn("1 file could not be read", step["output"])

    def test_deadline_and_cancel_end_a_slow_search(self):
        self.put("a", ("a" * 299 + "\n") * 200000)
        slow = {"pattern": "a(?:[a-z]|x)*a(?:[a-z]|x)*[bc]"}
        self.assert_end(self.search(**slow, max_runtime_seconds=1), 124, "timeout")
        process = self.start(self.job(self.step("search_files", **slow)))
        sba.wait_for(self.result_path.is_file, "the job to be accepted")
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)

    def test_bad_patterns_and_globs(self):
        self.put("a", "x\n")
        for arguments, words in (
                ({"pattern": "("}, "pattern: invalid regular expression: missing closing parenthesis, at byte 2"),
                ({"pattern": "x", "include": "\0"}, "include: expected a string without NUL"),
                ({"pattern": "x", "include": "*.{c,h"},
                 "/steps/1/arguments/include: the glob \"*.{c,h\" is malformed")):
            outcome = self.run_steps(self.write_file("made", ""), self.step("search_files", **arguments))
            self.assertEqual((outcome.exit, (self.workspace / "made").exists()), (2, False))
            self.assertIn(words, outcome.message)

    def test_grep_finds_the_same(self):
        words = ["int", "char", "return", "Null", "x1", "_t", "(", ")", " ", "\t", ";", "\u00e4", "==", "."]
        chance = random.Random(11)
        for number in range(60):
            lines = ["".join(chance.choices(words, k=chance.randrange(12))) for _ in range(chance.randrange(200))]
            self.put(f"d{number % 7}/f{number}.{'ch'[number % 2]}", "\n".join(lines))
        for pattern in ("int", "int|char", "^[a-z]+_t", "x1.*x1", "[[:space:]]$", "^$", "\\bint\\b", "\\(\\)",
                        "(int|char)+;", "[^a-z]x", "ret.{3}$", "\u00e4{2}", "^\\s*return"):
            locale = "C" if "\\b" in pattern else "C.UTF-8"  # to PCRE2 as used, only ASCII makes words
            grep = subprocess.run(["grep", "-rnE", "--include=*.c", "-e", pattern, "."], cwd=self.workspace,
                                  capture_output=True, env={"LC_ALL": locale, "PATH": "/usr/bin:/bin"})
            wanted = sorted(line[2:] for line in grep.stdout.decode().splitlines())
            got = sorted(f"{path}:{line}:{text}" for path, line, text in
                         self.found(pattern=pattern, include="*.c", max_matches=100000, max_output_bytes=1 << 24))
            self.assertEqual(got, wanted, pattern)


sba.main(__name__)
