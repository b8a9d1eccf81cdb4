# SPDX-License-Identifier: Apache-2.0
"""search_files through real jobs: what is found, what is left alone, and that grep agrees."""
import random
import signal
import subprocess
import time

import sba


class Search(sba.SandboxCase):
    def search(self, **arguments):
        """The outcome of a job of one search."""
        fields = {name: arguments.pop(name) for name in ("max_runtime_seconds", "max_output_bytes") if name in arguments}
        return self.run_job(self.job(self.step("search_files", **arguments), **fields))

    def found(self, **arguments):
        """What is found, as a list of (path, line, text)."""
        outcome = self.search(**arguments)
        self.assertEqual(outcome.exit, 0, outcome.result)
        matches = outcome.result["steps"][0]["result"]["matches"]
        return [(match["path"], match["line"], match["text"]) for match in matches]

    def refused(self, outcome, code):
        step = outcome.result["steps"][0]
        self.assertEqual((outcome.exit, step["status"], step["error_code"]), (1, "failure", code), outcome.result)
        return step

    def test_nothing_outside_is_read(self):
        outside = self.root / "outside"
        outside.mkdir()
        (outside / "secret").write_text("secret\n")
        outside.chmod(0o755)
        self.put("a", "secret of mine\n")
        (self.workspace / "directory").symlink_to(outside)
        (self.workspace / "file").symlink_to(outside / "secret")
        (self.workspace / "up").symlink_to("../outside")
        (self.workspace / "root").symlink_to("/proc/self/root")
        self.assertEqual(self.found(pattern="secret"), [("a", 1, "secret of mine")])
        for path in ("directory", "file", "up", "up/secret", "..", "../outside", "a/../../outside", str(outside),
                     str(self.workspace) + "-evil", "root/etc", "/etc/passwd"):
            step = self.refused(self.search(pattern="secret", path=path), "path_escape")
            self.assertIn("path escapes workspace", step["error"])
            self.assertNotIn("secret of", str(step))

    def test_empty_alternatives(self):
        self.put("a", "a\nab\n\n\tb\n")
        lines = [("a", 1, "a"), ("a", 2, "ab"), ("a", 4, "\tb")]
        self.assertEqual(self.found(pattern=r"(?:a|)\t*(?:a|)\S"), lines)

    def test_unreadable_files_are_passed_over(self):
        self.put("a", "x\n")
        self.put("b", "x\n", mode=0)
        outcome = self.search(pattern="x")
        step = outcome.result["steps"][0]
        self.assertEqual([match["path"] for match in step["result"]["matches"]], ["a"])
        self.assertIn("1 file could not be read", step["output"])

    def test_a_catastrophic_pattern(self):
        self.put("a", "b\n" + "a" * 5000 + "\n")
        step = self.refused(self.search(pattern="(a+)+[bc]"), "pattern_too_costly")
        self.assertIn("on file a line 2; simplify it", step["error"])

    def test_deadline_and_cancel_end_a_slow_search(self):
        self.put("a", ("a" * 299 + "\n") * 200000)
        slow = {"pattern": "a(?:[a-z]|x)*a(?:[a-z]|x)*[bc]"}
        outcome = self.search(**slow, max_runtime_seconds=1)
        self.assertEqual((outcome.exit, outcome.result["failure_code"]), (124, "timeout"))
        process = self.start(self.job(self.step("search_files", **slow)))
        sba.wait_for(self.result_path.is_file, "the job to be accepted")
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)

    def test_the_deadline_holds_on_a_long_line(self):
        self.put("a", "ab" * 5000000)
        outcome = self.search(pattern=r".*\w+\s*=", max_runtime_seconds=1)
        self.assertEqual((outcome.exit, outcome.result["failure_code"]), (124, "timeout"))

    def test_bad_patterns_and_globs(self):
        self.put("a", "x\n")
        for arguments, words in (({"pattern": "("}, "pattern: invalid regular expression: missing closing parenthesis, at byte 2"),
                                 ({"pattern": "x", "include": "\0"}, "include: expected a string without NUL"),
                                 ({"pattern": "x", "include": "*.{c,h"}, "/steps/1/arguments/include: the glob \"*.{c,h\" is malformed")):
            outcome = self.run_job(self.job(self.step("write_file", path="made", content=""), self.step("search_files", **arguments)))
            self.assertEqual((outcome.exit, (self.workspace / "made").exists()), (2, False))
            self.assertIn(words, outcome.result["failure_message"])

    def test_grep_finds_the_same(self):
        words = ["int", "char", "return", "Null", "x1", "_t", "(", ")", " ", "\t", ";", "\u00e4", "==", "."]
        chance = random.Random(11)
        for number in range(60):
            lines = ["".join(chance.choices(words, k=chance.randrange(12))) for _ in range(chance.randrange(200))]
            self.put(f"d{number % 7}/f{number}.{'ch'[number % 2]}", "\n".join(lines))
        for pattern in ("int", "int|char", "^[a-z]+_t", "x1.*x1", "[[:space:]]$", "^$", "\\bint\\b", "\\(\\)", "(int|char)+;",
                        "[^a-z]x", "ret.{3}$", "\u00e4{2}", "^\\s*return"):
            locale = "C" if "\\b" in pattern else "C.UTF-8"  # to PCRE2 as used, only ASCII makes words
            grep = subprocess.run(["grep", "-rnE", "--include=*.c", "-e", pattern, "."], cwd=self.workspace, capture_output=True,
                                  env={"LC_ALL": locale, "PATH": "/usr/bin:/bin"}, check=False)
            wanted = sorted(line[2:] for line in grep.stdout.decode().splitlines())
            got = sorted(f"{path}:{line}:{text}" for path, line, text in
                         self.found(pattern=pattern, include="*.c", max_matches=100000, max_output_bytes=1 << 24))
            self.assertEqual(got, wanted, pattern)


if __name__ == "__main__":
    sba.main()
