# SPDX-License-Identifier: Apache-2.0
"""apply_unified_diff through real jobs: hostile diffs, full and failing disks, and that nothing is half done."""
import os
import subprocess

import sba
from diffs import CHANGE, LINK, MOVE, NEW

PLAIN = "--- /dev/null\n+++ {}\n@@ -0,0 +1 @@\n+1\n"


def tree(directory):
    return {str(path.relative_to(directory)): os.readlink(path) if path.is_symlink() else path.read_bytes()
            for path in sorted(directory.rglob("*")) if path.is_symlink() or path.is_file()}


class Patches(sba.SandboxCase):
    def apply(self, diff, **options):
        fields = {name: options.pop(name) for name in ("strip", "dry_run") if name in options}
        outcome = self.run_job(self.job(self.apply_diff(diff, **fields)), **options)
        return outcome.steps[0]

    def accepted(self, diff, **options):
        step = self.apply(diff, **options)
        self.assertEqual(step["status"], "success", step)
        return step["result"]["files"]

    def refused(self, diff, code, words="", **options):
        """The diff fails with this code and changes nothing, inside and outside."""
        before, outside = tree(self.workspace), sorted(os.listdir(self.root))
        step = self.apply(diff, **options)
        self.assertEqual((step["status"], step["error_code"]), ("failure", code), step)
        self.assertIn(words, step["error"])
        self.assertNotIn("\n", step["error"])
        self.assertEqual(tree(self.workspace), before)
        self.assertEqual(sorted(os.listdir(self.root)), outside)
        return step["error"]

    def escapes(self, diff, **options):
        self.refused(diff, "path_escape", "path escapes workspace", **options)

    def test_writes_through_no_link(self):
        outside = self.root / "outside"
        outside.mkdir(mode=0o777)
        outside.chmod(0o777)
        (self.workspace / "out").symlink_to(outside)
        (self.workspace / "file").symlink_to(outside / "x")
        self.escapes(NEW.format("out/x", "1"))
        self.refused(CHANGE.format("file", "1", "2"), "patch_mismatch", "symbolic link")
        for target in (str(outside), "../outside", "d/../../outside", "./.././outside"):
            self.escapes(LINK.format("l", target) + NEW.format("l/x", "1"))
            self.escapes(LINK.format("l", target))
        self.escapes(LINK.format("l", "d") + NEW.format("l/x", "1"))
        self.put("x", "1\n")
        (self.workspace / "in").symlink_to(".")
        for wrapper in ([], sba.without("openat2")):
            self.escapes(CHANGE.format("in/x", "1", "2"), wrapper=wrapper)
        self.escapes(MOVE.format("out", "moved"))
        self.escapes(MOVE.format("out", "moved") + NEW.format("moved/x", "1"))
        self.assertEqual(list(outside.iterdir()), [])

    def test_leaves_the_workspace_by_no_name(self):
        self.put("x", "1\n")
        for name in ("../x", "a/../../x", "d/..", "/etc/passwd", f"{self.workspace}-evil/x", f"{self.workspace}/../x"):
            with self.subTest(name):
                self.escapes(PLAIN.format(name), strip=0)
                self.escapes(MOVE.format("x", name))
                self.escapes(MOVE.format(name, "y"))
        self.escapes(PLAIN.format('"b/\\056\\056/x"'))
        for name in ("b/" + "n" * 300, "b/" + "n/" * 3000 + "n"):
            self.refused(PLAIN.format(name), "name_too_long")
        self.refused(NEW.format(".git/hooks/pre-commit", "1"), "invalid_patch", ".git")
        for name, words in (("", "name"), ("b/", ""), (".", ""), ("x\0y", "name")):
            self.refused(PLAIN.format(name), "invalid_patch", words)

    def test_runs_nothing(self):
        self.put("x", "1\n")
        self.refused("1d\na\n!touch pwned\n.\nw\nq\n", "invalid_patch", "no change found")
        self.refused("--- x\n+++ x\n1d\n!touch pwned\nw\n", "invalid_patch")

    def test_a_header_of_git_alone_is_no_change(self):
        # git apply refuses these; a model that leaves out '@@' must not be told that its lines are there.
        self.put("x", "a\n"), self.put("y", "a\n")
        header, change = "diff --git a/x b/x\n", "diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
        for more in ("", "-a\n+b\n", "similarity index 100%\n", "index 1..2 100644\n+b\n", header,
                     "--- a/x\n+++ b/x\n-a\n+b\n", "-a\n+b\n" + change, "\n-a\n+b\n" + change):
            with self.subTest(more):
                self.refused(header + more, "invalid_patch")
        self.accepted(header + change)
        self.assertEqual(tree(self.workspace), {"x": b"a\n", "y": b"b\n"})

    def test_takes_what_is_large(self):
        self.put("x", b"y" * (1 << 20) + b"\n")
        self.accepted(CHANGE.format("x", "y" * (1 << 20), "z\0" + "y" * (1 << 20)))
        self.assertEqual(len(tree(self.workspace)["x"]), (1 << 20) + 3)
        self.assertLess(len(self.refused(CHANGE.format("x", "y" * (1 << 20), "z"), "patch_mismatch")), 1000)
        self.put("many", "".join(f"{i}\n" for i in range(200000)))
        hunks = (f"@@ -{old + 1} +{old + 1} @@\n-{old}\n+-\n" for old in range(0, 200000, 2))
        diff = "--- many\n+++ many\n" + "".join(hunks)
        self.assertEqual(self.accepted(diff)[0]["hunks"], 100000)
        self.assertEqual(tree(self.workspace)["many"].count(b"-\n"), 100000)

    def test_a_file_that_is_too_large_is_not_read_first(self):
        os.truncate(self.put("large"), 3 << 30)
        for diff in (CHANGE.format("large", "a", "b"), "diff --git a/large b/new\nrename from large\nrename to new\n"):
            outcome = self.run_job(self.job(self.apply_diff(diff)))
            self.assert_end(outcome, 1, "step_failed", "large is larger than 1024 MiB")
            self.assertLess(outcome.result["resource_usage"]["max_rss_bytes"], 256 << 20)

    def test_begin_patch_is_as_safe(self):
        self.put("x", "1\n2\n1\n")
        (self.workspace / "out").symlink_to(self.root)
        form = "*** Begin Patch\n{}\n*** End Patch\n"
        for name in ("../x", "/etc/x", "out/x", "d/../../x", '"\\056\\056/x"'):
            with self.subTest(name):
                for part in ("Add File: {}\n+1", "Delete File: {}", "Update File: x\n*** Move to: {}"):
                    self.escapes(form.format("*** " + part.format(name)))
        self.refused(form.format("*** Add File: .git/hooks/x\n+1"), "invalid_patch", ".git")

    def test_reads_the_names_of_git_as_git_does(self):
        # Directories called a and b at the top, and what `git diff` and `git apply` make of them.
        def change(top):
            (top / "a/x").write_text("1\n2\n"), (top / "x").write_text("1\n3\n")
            (top / "b/new").write_text("n\n"), (top / "new").write_text("n2\n")
            (top / "a/gone").unlink(), (top / "top").write_text("0\n" + (top / "top").read_text())
            (top / "a/m").rename(top / "b/m"), (top / "empty").write_text("1\n")
        files = {"a/x": "1\n", "x": "1\n", "b/x": "1\n", "a/gone": "g\n", "gone": "g\n", "b/keep": "k\n",
                 "a/m": "m\n" * 9, "top": "1\n2\n", "empty": ""}
        for options in ([], ["--no-prefix", "-U0", "--no-renames"], ["--src-prefix=i/", "--dst-prefix=w/"], ["-U0"]):
            for only in ([], ["a/x"], ["b/new"], ["a/gone"], ["top"]):
                with self.subTest(options=options, only=only):
                    repository, wanted = self.root / "repository", self.root / "wanted"
                    for top in (repository, wanted, *self.workspace.iterdir()):
                        subprocess.run(["rm", "-rf", top], check=True)
                    for name, content in files.items():
                        self.put(name, content)
                        for top in (repository, wanted):
                            (top / name).parent.mkdir(parents=True, exist_ok=True), (top / name).write_text(content)
                    git = ["git", "-c", "user.name=t", "-c", "user.email=t", "-C", repository]
                    subprocess.run([*git, "init", "-q"], check=True), subprocess.run([*git, "add", "-A"], check=True)
                    subprocess.run([*git, "commit", "-qm", "1"], check=True)
                    change(repository)
                    subprocess.run([*git, "add", "-A"], check=True)
                    diff = subprocess.check_output([*git, "diff", "--cached", *options, "--", *only])
                    strip = ["-p0"] if "--no-prefix" in options else []
                    subprocess.run(["git", "apply", "--unidiff-zero", *strip], input=diff, cwd=wanted, check=True)
                    self.accepted(diff.decode())
                    self.assertEqual(tree(self.workspace), tree(wanted))

    def test_dry_run_needs_no_right_to_write(self):
        self.put("x", "1\n")
        self.workspace.chmod(0o555)
        diff = CHANGE.format("x", "1", "2") + NEW.format("y", "1")
        self.assertEqual(self.accepted(diff, dry_run=True)[1]["action"], "created")
        self.refused(diff, "permission_denied")

    def test_is_all_or_nothing_when_the_disk_is_full(self):
        self.mount(self.workspace, "64k")
        self.put("x", "1\n"), self.put("y", "1\n")
        diff = CHANGE.format("x", "1", "2" * 10000) + CHANGE.format("y", "1", "2" * 60000)
        error = self.refused(diff, "no_space", "y")
        self.assertIn("No space left", error)


sba.main(__name__)
