# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the runner at every call with which a patch changes the workspace: --resume brings the job to the result
and the files that it would have had, whatever of the patch was done. What a hostile workspace or journal makes of that
stays in the workspace."""
import json
import os
import shutil
import unittest

import sba
from diffs import CHANGE, DELETE, EXECUTABLE, MOVE, NEW, state
from sba import SandboxCase

DIFF = "".join((
    CHANGE.format("x", "old x", "new x"),
    EXECUTABLE.format("d/y") + CHANGE.format("d/y", "old y", "new y"),
    NEW.format("s/t/z", "made"),
    DELETE.format("gone/deep/only", "old only"),
    MOVE.format("o", "p/o"),
    EXECUTABLE.format("mode"),
    DELETE.format("file", "old file") + NEW.format("file/below", "a directory now"),
    DELETE.format("tree/b/c", "old c") + NEW.format("tree", "a file now"),
    '--- "a/odd\\377%41"\n+++ "b/odd\\377%41"\n@@ -1 +1 @@\n-old odd\n+new odd\n',
    DELETE.format("link", "x").replace("100644", "120000") + "\\ No newline at end of file\n"))
OLD = {"x": "old x\n", "d/y": "old y\n", "gone/deep/only": "old only\n", "o": "old o\n", "mode": "old mode\n",
       "file": "old file\n", "tree/b/c": "old c\n", os.fsdecode(b"odd\xff%41"): "old odd\n"}
OF_THE_RUN = dict.fromkeys(("workspace_changes", "artifacts"))  # a resumed one has a changes.patch of its own
CALLS = ["renameat2", "renameat", "linkat", "mkdirat", "fchmod", "unlinkat", "write", "writev"]
# Of the calls to be killed at; with sanitizers each takes long.
STRIDE = (3 if sba.IS_DEV else 1) * (1 if sba.LONG else 4)
UNDOING = ["renameat", "unlinkat", "mkdirat", "fchmod"]


@sba.wants("strace")
class PatchKillCase(SandboxCase):
    def setUp(self):
        super().setUp()
        self.the_job = self.job(self.apply_diff(DIFF), self.sh("cat x"), report_changes=True)

    def originals(self):
        self.clean()
        for path, content in OLD.items():
            self.put(path, content)
        (self.workspace / "tree/b").chmod(0o750)
        os.symlink("x", self.workspace / "link")
        self.give(self.workspace / "link")

    def killed_at(self, call, count, faults=(), number="SIGKILL"):
        """False where it had fewer such calls."""
        self.originals()
        names = {call, *(fault.split(":")[0] for fault in faults)}
        all_faults = (*faults, f"{call}:signal={number}:when={count}")
        inject = [argument for fault in all_faults for argument in ("-e", "inject=" + fault)]
        status = self.run_job(self.the_job, wrapper=sba.strace(",".join(names), *inject), timeout=60).exit
        self.assertIn(status, (0, 1, -9, 137), (call, count))
        return status != 0

    def resumed(self, wrapper=()):
        return self.run_job(self.the_job, "--resume", wrapper=wrapper)


class ResumedCase(PatchKillCase):
    def check(self, moment):
        planned = "step.changes" in " ".join(line["event"] for line in self.journal()).rpartition("step.started")[2]
        outcome = self.resumed()
        self.assertEqual(outcome.exit, 0, (moment, outcome.result, outcome.stderr))
        self.assertNotIn(".sba-", json.dumps(outcome.result), moment)
        self.assertEqual({**sba.without_times(outcome.result), **OF_THE_RUN}, self.result, moment)
        self.assertEqual(state(self.workspace), self.new, moment)
        return planned

    def learn(self):
        self.originals()
        outcome = self.assert_end(self.run_job(self.the_job), 0)
        self.result, self.new = {**sba.without_times(outcome.result), **OF_THE_RUN}, state(self.workspace)


class EveryMoment(ResumedCase):
    def kill_everywhere(self, calls, *faults, stride=STRIDE):
        self.learn()
        planned = 0
        for call in calls:
            count = 1
            while self.killed_at(call, count, faults):
                planned += self.check((call, count, faults))
                count += stride
        return planned

    def test_with_links(self):
        self.assertGreaterEqual(self.kill_everywhere(CALLS), 30 // STRIDE)  # so that enough was tried

    def test_without_links(self):
        # The rename of the result is left alone; that of the patch is the only way. The last one is of changes.patch.
        faults = ["renameat2:error=EINVAL", "linkat:error=EPERM"]
        self.assertGreater(self.kill_everywhere(["renameat"], *faults, stride=3 if sba.IS_DEV else 1), 8 // STRIDE)

    def test_again_while_it_is_undone(self):
        # The first kill comes when the patch is all but done, the second at each call of the resumed run.
        self.learn()
        last = 1
        while self.killed_at("linkat", last + 1):
            last += 1
        moments = 0
        for call in UNDOING:
            count = 1
            while self.killed_at("linkat", last):
                if self.resumed(sba.injecting(call, f"signal=SIGKILL:when={count}")).exit == 0:
                    break
                self.check(("linkat", last, call, count))
                count += STRIDE
            moments += count // STRIDE
        self.assertGreater(moments, 25 // STRIDE)


class Once(PatchKillCase):
    """A step that appends to a file or edits it does so once, whenever the runner is killed."""

    def originals(self):
        super().originals()
        self.put("log", "1\n")
        self.put("edited", "x\n")

    def test_appends_and_edits_once(self):
        self.the_job = self.job(self.write_file("log", "2\n", append=True),
                                self.write_file("made", "3\n", append=True),
                                self.step("replace_in_file", path="edited", old_text="x", new_text="xy"))
        self.originals()
        result = sba.without_times(self.run_job(self.the_job).result)
        moments = appended = 0
        for call in ("rename", "renameat", "renameat2", "unlinkat", "write", "writev"):
            count = 1
            while self.killed_at(call, count):
                moments += 1
                appended += self.text("log") == "1\n2\n"
                outcome = self.resumed()
                self.assertEqual(sba.without_times(outcome.result), result, (call, count, outcome.stderr))
                self.assertEqual([self.text(name) for name in ("log", "made", "edited")], ["1\n2\n", "3\n", "xy\n"],
                                 (call, count))
                count += 1
        self.assertGreater(moments, 6)
        self.assertGreater(appended, 0)

    def test_an_append_that_was_cut_off_goes_on(self):
        # It takes three writes; what stands there of it is not written again. Others' bytes behind the old ones are
        # none of it.
        content = "".join(f"{i:07d}\n" for i in range(80000))
        self.the_job = self.job(self.write_file("log", content, append=True))
        cut_off = 0
        for meddle in (False, True):
            count = 1
            while self.killed_at("write", count):
                there = self.text("log")
                cut_off += 2 < len(there) < 2 + len(content)
                if meddle and len(there) < 2 + len(content):
                    there = there[:2] + "others\n"
                    self.put("log", there)
                outcome = self.resumed()
                self.assertEqual(outcome.exit, 0, outcome.stderr)
                self.assertTrue(self.text("log") == (there if "others" in there else "1\n") + content, (count, meddle))
                self.assertEqual(outcome.steps[0]["result"]["size_bytes"], len(self.text("log")))
                count += 1
        self.assertGreaterEqual(cut_off, 2)


class Between(ResumedCase):
    """Between the kill and the next run somebody has been at the workspace, or the journal."""

    def setUp(self):
        super().setUp()
        self.outside = self.folder(self.root / "outside")
        self.learn()
        for name in ("x", "y", "secret"):
            self.put(self.outside / name, "outside\n")
        self.assertTrue(self.killed_at("linkat", 3))
        self.plan = next(line for line in self.journal() if line["event"] == "step.changes")
        words = {"kind", "path", "other", "aside", "kept", "mode", "old_mode"}  # that other versions read
        self.assertEqual({word for change in self.plan["changes"] for word in change}, words)

    def tearDown(self):
        self.assertEqual({path.name: path.read_text() for path in self.outside.iterdir()},
                         {"x": "outside\n", "y": "outside\n", "secret": "outside\n"})

    def test_what_somebody_wrote_to_a_file_is_lost(self):
        (self.workspace / "d/y").write_text("precious\n")
        self.check("written")

    def test_a_workspace_that_was_copied(self):
        copy = self.root / "copy"
        shutil.copytree(self.workspace, copy, symlinks=True)
        shutil.rmtree(self.workspace)
        copy.rename(self.workspace)
        self.give(self.workspace, *self.workspace.rglob("*"))
        self.check("copied")

    def test_what_cannot_be_put_back_is_told(self):
        os.rename(self.workspace / "d", self.workspace / "real")
        os.symlink(self.outside, self.workspace / "d")
        outcome = self.assert_end(self.resumed(), 1, "step_failed")
        for place in (outcome.message, outcome.steps[0]["error"]):
            self.assertIn("could not be put back: d/y is kept as d/.sba-", place)
        self.assertTrue(outcome.events("step.not_undone"))
        self.assertEqual(self.text("o"), "old o\n")

    def test_a_forged_plan(self):
        # The worst that a journal can do is what a command can do: within the workspace.
        secret = os.lstat(self.outside / "secret")
        os.link(self.outside / "secret", self.workspace / ".sba-00000000")
        os.symlink(self.outside, self.workspace / "way")
        linked = ".sba-00000000"
        for path, other in (("../outside/secret", linked), ("way/secret", linked), ("way/x", "way/.sba-00000000"),
                            (str(self.outside / "secret"), linked), ("../outside/x", "../outside/.sba-00000000"),
                            ("x", "../x"), ("x", "way/x"), ("x", "d/y"), ("", linked), (".", linked),
                            ("x/../../outside/x", linked)):
            for kind in ("put", "remove", "mode"):
                for names in ({"other": other}, {"other": other, "aside": other}, {"aside": other}, {}):
                    self.forge([{"kind": kind, "path": path, "old_mode": 0o777, **names}])
        self.forge([{"kind": "directory", "path": path, "old_mode": 0o777} for path in ("../outside/made", "way/made")])
        self.assertEqual(os.lstat(self.outside / "secret").st_mode, secret.st_mode)

    def forge(self, changes):
        lines = [line for line in self.journal()[:2] if line["event"] in ("job", "step.started")]
        lines.append({**self.plan, "changes": changes})
        self.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.assertIn(self.resumed().exit, (0, 1))

    @unittest.skipIf(sba.IS_DEV, "the sanitizers take what looks like a fault of the program")
    def test_a_crash_undoes_at_once(self):
        # The end by exec puts back what was there, and leaves no temporary file.
        crashed = []
        for call, count in (("renameat", 3), ("renameat2", 4), ("linkat", 2), ("unlinkat", 2), ("fchmod", 3)):
            self.originals()
            before = state(self.workspace)
            if not self.killed_at(call, count, number="SIGSEGV"):
                continue
            result = json.loads(self.result_path.read_bytes())
            self.assertEqual(result["failure_code"], "internal_error", call)
            self.assertEqual([step["status"] for step in result["steps"]], ["failure", "skipped"], call)
            self.assertEqual(state(self.workspace), before, call)
            self.assertEqual((self.resumed().exit, state(self.workspace)), (0, self.new), call)
            crashed.append(call)
        self.assertTrue(crashed)

    def test_a_commands_own_files_of_such_names_stay(self):
        # Those of the patch that was cut off go, also where it had no plan yet.
        own = [".sba-12345678", ".sba-00000000", ".sba-ffffffff", "d/.sba-87654321"]
        self.the_job = self.job(self.sh(f"touch {' '.join(own)}"), self.apply_diff(DIFF), self.sh("cat x"))
        killed = []
        for call, count in (("renameat2", 1), ("renameat", 1), ("fchmod", 2), ("linkat", 1)):
            if not self.killed_at(call, count):
                continue
            self.assert_end(self.resumed(), 0)
            found = [os.path.relpath(path, self.workspace) for path in self.workspace.rglob(".sba-*")]
            self.assertEqual(sorted(found), sorted(own), call)
            killed.append(call)
        self.assertTrue(killed)

    def test_a_plan_that_is_none(self):
        lines = [json.dumps(line) for line in self.journal()]
        for plan in ({"changes": 1}, {"changes": [{}]}, {"changes": [{"kind": "put", "path": 5}]},
                     {"changes": [], "index": 3}, {"changes": [{"kind": "nothing", "path": "x"}]}):
            kept = lines[:2] + [json.dumps({"event": "step.changes", "index": 0, **plan})]
            self.journal_file.write_text("\n".join(kept) + "\n")
            outcome = self.resumed()
            self.assertEqual((outcome.exit, outcome.code), (2, "interrupted"), plan)
            self.assertIn("line 3", outcome.events("job.refused")[0]["failure_message"])


sba.main(__name__)
