# SPDX-License-Identifier: Apache-2.0
"""workspace_changes: what a job did to its workspace, in the result and as changes.patch."""
import os
import pathlib
import random
import re
import shutil
import subprocess

import sba


GIT = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def tree(root):
    """Without .git: content, whether it is executable."""
    found = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name != ".git"]
        for name in [*files, *[name for name in names if os.path.islink(os.path.join(directory, name))]]:
            path = pathlib.Path(directory, name)
            found[str(path.relative_to(root))] = (("link", os.readlink(path)) if path.is_symlink() else
                                                  (path.read_bytes(), bool(path.stat().st_mode & 0o100)))
    return found


class ChangesCase(sba.SandboxCase):
    @property
    def patch(self):
        return self.job_directory / "artifacts" / "changes.patch"

    @staticmethod
    def reporting(*steps, **fields):
        return sba.SandboxCase.job(*steps, report_changes=True, **fields)

    def reported(self, job, *more, **options):
        """Runs a job. Gives the outcome, and workspace_changes."""
        done = self.run_job(job, *more, **options)
        sba.result_validator().validate(done.result)
        return done, done.result.get("workspace_changes")

    def changed(self, *steps, exit_status=0, **options):
        """The original with changes.patch applied must be the final workspace. Gives workspace_changes."""
        original = self.root / "original"
        for copy in (original, self.root / "first"):
            shutil.copytree(self.workspace, copy, symlinks=True)
        done, changes = self.reported(self.reporting(*steps), **options)
        self.assertEqual(done.exit, exit_status, done.message)
        if self.patch.exists():
            applied = subprocess.run(["git", "apply", "--whitespace=nowarn", str(self.patch)],
                                     cwd=original, env=GIT, capture_output=True)
            self.assertEqual(applied.returncode, 0, applied.stderr + self.patch.read_bytes()[:2000])
            self.assertIn("changes.patch", [artifact["path"] for artifact in done.result["artifacts"]])
        self.before, self.after = tree(original), tree(self.workspace)
        return changes

    def actions(self, changes):
        return {file["path"]: file["action"] for file in changes["files"]}


class Changes(ChangesCase):
    def test_every_action(self):
        self.put("kept", "same\n")
        self.put("edited", "".join(f"{n}\n" for n in range(100)))
        self.put("removed", "gone\n")
        self.put("script", "#!/bin/sh\n")
        self.put("dir/becomes a link", "file\n")
        script = r"""sed -i -e 's/^50$/fifty/' -e '3d' -e '90a new' edited; rm removed; chmod +x script; touch kept
            ln -sf ../kept 'dir/becomes a link'; ln -s nowhere dangling; printf 'no newline' > 'a "quoted"	name'
            mkdir -p x/y; echo é > x/y/é; : > empty
            echo '#!' > run; chmod 755 run; echo x > mode-only; chmod 600 mode-only"""
        changes = self.changed(self.sh(script))
        self.assertEqual(self.before, self.after)
        self.assertEqual(self.actions(changes), {
            "edited": "modified", "removed": "deleted", "script": "mode_changed", "dir/becomes a link": "type_changed",
            **dict.fromkeys(("dangling", 'a "quoted"\tname', "x/y/é", "run", "mode-only", "empty"), "created")})
        self.assertEqual(changes["counts"], dict(created=6, modified=1, deleted=1, mode_changed=1, type_changed=1))
        edited = next(file for file in changes["files"] if file["path"] == "edited")
        self.assertEqual((edited["size_bytes_before"], edited["size_bytes"]), (290, 290 - 3 - 2 + 6 + 4))

    def test_the_report_shows_the_diff_first(self):
        self.put("edited <b>", "old & line\n")
        self.changed(self.sh("echo 'new & line' > 'edited <b>'; head -c 9 /dev/zero > zeros"))
        page = sba.run("--report", str(self.result_path)).stdout.decode()
        self.assertIn("1 created, 1 modified", page)
        self.assertIn('<span class="removed">-old &amp; line\n</span>'
                      '<span class="added">+new &amp; line\n</span>', page)
        self.assertIn("not in the diff: binary", page)
        self.assertLess(page.index("-old &amp; line"), page.index("not in the diff: binary"))
        self.assertIn("Commands could write below", page)

    def test_nothing_changed(self):
        self.put("file", "x\n")
        changes = self.changed(self.sh("touch file; echo y > new; rm new; cp -p file c && mv c file"))
        self.assertEqual((changes["files"], changes["truncated"], self.patch.exists()), ([], False, False))

    def test_a_link_that_leads_elsewhere(self):
        link = self.workspace / "link"
        os.symlink("old", link)
        self.changed(self.sh("ln -sfn new link"))
        self.assertEqual((self.before, os.readlink(link)), (self.after, "new"))
        os.remove(link)
        os.symlink("old", link)
        self.assert_end(self.run_steps(self.step("apply_unified_diff", diff=self.patch.read_text())), 0)
        self.assertEqual(os.readlink(link), "new")

    def test_it_is_not_reported_unasked(self):
        done = self.run_steps(self.write_file("a", "b"))
        self.assertNotIn("workspace_changes", done.result)
        _, changes = self.reported(self.job(self.write_file("a", "c")), env={"SBA_REPORT_CHANGES": "1"})
        self.assertEqual(self.actions(changes), {"a": "modified"})

    def test_a_failed_job_reports_too(self):
        changes = self.changed(self.sh("echo x > new; exit 1"), exit_status=1)
        self.assertEqual((self.actions(changes), self.before), ({"new": "created"}, self.after))

    def test_what_git_and_gitignore_leave_out(self):
        subprocess.run(["git", "init", "-q", str(self.workspace)], env=GIT, check=True)
        self.put(".gitignore", "*.o\n/build/\n!kept.o\nlogs/**/debug\n# comment\n\\#hash\nb?d\nb??e\n[^a]x\n")
        self.put("sub/.gitignore", "local\n")
        self.put("all/.gitignore", "*\n!/**\n.gitignore\n1/***/y\n3**/y\n")
        self.put("marked/.gitignore", "\ufefflocal\r\n")  # with a byte order mark
        subprocess.run(["chown", "-R", f"{sba.UID or os.getuid()}", str(self.workspace)], check=True)
        script = """mkdir -p build sub/build logs/a all/1/2 all/34/5
            for f in a.o kept.o build/x sub/build/x sub/local local logs/a/debug '#hash' sub/b.o bäd bäe äx \
                all/1/x all/1/2/y all/3y all/34/5/y all/34/5/z marked/local marked/x; do echo x > "$f"; done
            git -c user.name=a -c user.email=b commit -q --allow-empty -m x"""
        # git takes bytes for characters
        kept = {"kept.o", "sub/build/x", "local", "bäd", "äx", "all/1/x", "all/34/5/z", "marked/x"}
        self.assertEqual(set(self.actions(self.changed(self.sh(script)))), kept)
        command = ["git", "-c", "safe.directory=*", "-c", "core.quotepath=off", "status", "--porcelain", "-uall"]
        status = subprocess.run(command, cwd=self.workspace, env=GIT, capture_output=True, text=True, check=True).stdout
        rules = {".gitignore", "sub/.gitignore", "marked/.gitignore"}
        self.assertLessEqual({line[3:] for line in status.splitlines()}, kept | rules)

    def test_binary_and_large_files_are_named(self):
        self.put("image", b"\x89PNG\0" * 100)
        self.put("large", b"x" * (17 << 20))
        changes = self.changed(self.sh("echo >> image; echo >> large; head -c 9 /dev/zero > zeros; echo > text"))
        self.assertEqual({file["path"]: file.get("left_out") for file in changes["files"]},
                         {"image": "binary", "large": "too_large", "zeros": "binary", "text": None})
        self.assertEqual(self.before["text"], self.after["text"])

    def test_what_cannot_be_read_is_not_called_deleted(self):
        for path in ("closed/a", "closed/b/c", "listed/a", "opened/a", "z", "gone/closed/a"):
            self.put(path, "x\n")
        for path in ("opened", "gone/closed"):
            os.chmod(self.workspace / path, 0)
        cleanup = ["sh", "-c", 'chmod -R u+rwX "$0"; rm -rf "$0"', str(self.workspace)]
        self.addCleanup(subprocess.run, cleanup, check=True)
        deep = "i=0; while [ $i -lt 1010 ]; do mkdir d && cd d || exit; i=$((i + 1)); done; echo x > f"
        script = f"chmod 0 closed; chmod 444 listed; chmod 755 opened; rm z; ({deep}); rm -rf gone; : > gone"
        done, changes = self.reported(self.reporting(self.sh(script)))
        self.assertEqual(done.exit, 1)  # gone/closed stays: it cannot be read to be removed
        unreadable = "closed", "listed/a", "opened", "gone/closed", "/".join("d" * 1000)
        self.assertEqual({file["path"]: (file["action"], file.get("left_out")) for file in changes["files"]},
                         {**dict.fromkeys(unreadable, ("unreadable", "unreadable")), "z": ("deleted", None)})
        self.assertEqual((changes["counts"]["unreadable"], changes["truncated"]), (5, True))
        self.assertEqual(self.patch.read_text(), "diff --git a/z b/z\ndeleted file mode 100644\n"
                                                 "--- a/z\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n")

    def test_what_is_in_the_way_of_the_patch_goes_or_is_said(self):
        outside = self.put("outside", "kept\n")
        for script, is_written in (
                ("mkdir $P", True), ("mkfifo $P", True), (f"ln -s {outside} $P", True), ("ln -s nowhere $P", True),
                ("mkdir $P; echo > $P/x", False), ("chmod 0 $CYNODE_ARTIFACTS_DIR", False)):
            first = "P=$CYNODE_ARTIFACTS_DIR/changes.patch; echo >> new;"
            _, changes = self.reported(self.reporting(self.sh(first + script)))
            self.assertEqual((changes.get("patch"), "changes.patch" in changes.get("patch_error", "")),
                             ("changes.patch", False) if is_written else (None, True), (script, changes))
            self.patch.parent.chmod(0o755)
            self.assertEqual(self.patch.is_file(), is_written)
            shutil.rmtree(self.patch.parent)
            self.assertEqual(outside.read_text(), "kept\n")

    def test_the_runners_own_files_are_none_of_it(self):
        self.give(self.root)
        _, changes = self.reported(self.reporting(self.write_file("a", "b")), "--workspace", str(self.root))
        self.assertEqual(self.actions(changes), {"a": "created"})

    def test_a_resumed_job_says_since_when(self):
        kill = "test -e killed || { touch killed; sleep 9; }; echo > late"
        job = self.reporting(self.write_file("early", "x"), self.sh(kill))
        self.run_and_kill(job)
        _, changes = self.reported(job, "--resume")
        self.assertEqual((self.actions(changes), changes["since_resume"]), ({"late": "created"}, True))

    def test_at_the_deadline_the_job_still_ends_in_time(self):
        for number in range(2000):
            self.put(f"d{number % 50}/f{number}", f"{number}\n" * 200)
        slow = sba.slowness()
        appending = self.sh("for f in d*/*; do echo x >> $f; done; sleep 60")
        done = self.run_job(self.reporting(appending, max_runtime_seconds=3))
        self.assert_in_time(done, 3, slow)
        self.assertEqual(done.status, "timeout")
        self.assertGreater(sum(done.result["workspace_changes"]["counts"].values()), 0)

    def test_at_the_deadline_many_changes_are_listed(self):
        # Lua that goes on past its time is stopped after a million instructions: less than the list of these takes, or
        # the diff of one file of them.
        lines = [f"{number} of a file\n" for number in range(2000)]
        for number in range(400):
            self.put(f"a{number}", "".join(lines))
        changing = self.sh("sed -i 's/[13579] of/x/' a*; seq -f z%g 20000 | xargs touch; sleep 60")
        done, changes = self.reported(self.reporting(changing, max_runtime_seconds=5))
        self.assertEqual((done.status, done.events("internal.error")), ("timeout", []))
        self.assertEqual(changes["counts"]["modified"], 400)
        self.assertGreater(changes["counts"]["created"], 5000)
        self.assertIn("no_time", [file.get("left_out") for file in changes["files"]])


class RandomTrees(ChangesCase):
    """The first tree with changes.patch applied is the final one; what the list says is left out is as it was."""

    NAMES = [b"a", b"b", b"c", b"a ", b" b", b"a b", b"b ", b"\xc3\xa9", b"\xff\xfe", b'q"', b"back\\", b"tab\t",
             b"line\n", b"-", b"*", b"'", b"r\r", b"{}"]
    LINES = [b"%d\n" % number for number in range(40)]
    TEXTS = [b"", b"x", b"x\n", b"1\n2\n3\n", b"1\ntwo\n3", b"1\r\n2\r\n", b"1\r\n2\r\n3", b"\r", b"\n\n",
             b"-- a\n++ b\n", b"\xff\n", b"x \t\n", b"\0", b"b\0\n", b"a/x", b"nowhere",
             b"".join(LINES), b"".join(line for number, line in enumerate(LINES) if number % 9)]

    def node(self, depth=0):
        """A directory (dict), a link (str) or a file (content, mode)."""
        kind = self.random.randrange(8 if depth < 3 else 5)
        if kind == 0:
            # Not to itself: git takes ELOOP for a mistake.
            return self.random.choice(["../b", "nowhere", "/etc", "x y/z", "\t"])
        if kind < 5:
            return (self.random.choice(self.TEXTS), self.random.choice([0o644, 0o644, 0o755, 0o600]))
        return {self.random.choice(self.NAMES): self.node(depth + 1) for _ in range(self.random.randrange(4))}

    def changed_node(self, node, depth=0):
        if not isinstance(node, dict) or not self.random.randrange(8):
            return self.random.choice([node, node, self.node(depth)])
        kept = {name: self.changed_node(below, depth + 1) for name, below in node.items() if self.random.randrange(5)}
        if depth < 3 and not self.random.randrange(4):
            kept[self.random.choice(self.NAMES)] = self.node(depth + 1)
        return kept

    def make(self, path, node):
        if isinstance(node, str):
            os.symlink(node, path)
        elif isinstance(node, dict):
            os.mkdir(path)
            for name, below in node.items():
                self.make(path + b"/" + name, below)
        else:
            with open(path, "wb") as file:
                file.write(node[0])
            os.chmod(path, node[1])

    def roots(self, count):
        """Makes the first trees in the workspace, and the final ones."""
        final = self.root / "final"
        final.mkdir()
        for number in range(count):
            node = {self.random.choice(self.NAMES): self.node() for _ in range(4)}
            self.make(os.fsencode(self.workspace / f"t{number}"), node)
            self.make(os.fsencode(final / f"t{number}"), self.changed_node(node) if number % 50 else {})
        subprocess.run(["chown", "-hR", f"{sba.UID or os.getuid()}", str(self.workspace), str(final)], check=True)
        return final

    def test_round_trips(self):
        for seed in range(50 if sba.LONG else 3):
            with self.subTest(seed=seed):
                case = self.fresh()
                case.random = random.Random(seed)
                case.round_trips(100)

    @staticmethod
    def shown(path):
        return re.sub("\ufffd+", "?", os.fsencode(path).decode(errors="replace"))

    def round_trips(self, count):
        final = self.roots(count)
        changes = self.changed(self.sh(f"find . -mindepth 1 -delete; cp -dR '{final}'/. ."))
        applied, first, after = ({self.shown(path): what for path, what in found.items()}
                                 for found in (self.before, tree(self.root / "first"), tree(self.workspace)))
        left_out = {self.shown(file["path"]) for file in changes["files"] if "left_out" in file}
        expected = {path: what for path, what in after.items() if path not in left_out}
        self.assertEqual(applied, expected | {path: first[path] for path in left_out & first.keys()})


sba.main(__name__)
