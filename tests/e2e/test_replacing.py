# SPDX-License-Identifier: Apache-2.0
"""What stays of a file that a step replaces: group, access list, attributes; and files that cannot be replaced."""
import os
import struct
import unittest

import sba

DIFF = "--- a/conf.yml\n+++ b/conf.yml\n@@ -1 +1 @@\n-a: 1\n+a: 2\n"


class Replacing(sba.SandboxCase):
    def each_edit(self):
        yield self.step("replace_in_file", path="conf.yml", old_text="a: 1", new_text="a: 2")
        yield self.apply_diff(DIFF)
        yield self.write_file("conf.yml", "a: 2\n")

    @unittest.skipUnless(sba.MAY_MOUNT, "nothing can be mounted here")
    def test_a_file_that_is_mounted_by_itself(self):
        outside = self.put(self.root / "outside.yml", "a: 1\n")
        target = self.put("conf.yml", "a: 1\n")
        mounted = self.in_namespace(f"mount --bind {outside} {target}")
        for step in self.each_edit():
            outcome = self.run_job(self.job(step), **mounted)
            self.assertEqual((outcome.exit, outcome.steps[0]["error_code"]), (1, "mount_point"), step["type"])
            self.assert_says(outcome.message, "conf.yml: it is a mount point", "run_command can write into it")
        deletion = self.apply_diff("--- a/conf.yml\n+++ /dev/null\n@@ -1 +0,0 @@\n-a: 1\n")
        self.assertEqual(self.run_job(self.job(deletion), **mounted).steps[0]["error_code"], "mount_point")
        self.assertEqual(outside.read_text(), "a: 1\n")
        self.assertEqual(sorted(os.listdir(self.workspace)), ["conf.yml"])

    @unittest.skipUnless(sba.UID, "wants root")
    def test_group_and_attributes_stay(self):
        group = sba.UID + 1
        for step in self.each_edit():
            target = self.put("conf.yml", "a: 1\n", 0o664)
            os.chown(target, sba.UID, group)
            target.chmod(0o664)
            has_attributes = True
            try:
                os.setxattr(target, "user.note", b"keep")
            except OSError:
                has_attributes = False
            self.assert_end(self.run_job(self.job(step), extra_groups=[group]), 0)
            status = target.stat()
            self.assertEqual((status.st_uid, status.st_gid, status.st_mode), (sba.UID, group, 0o100664), step["type"])
            if has_attributes:
                self.assertEqual(os.getxattr(target, "user.note"), b"keep", step["type"])
            target.unlink()

    def test_the_access_list_stays(self):
        # u::rw-, u:12345:rw-, g::r--, m::rw-, o::---
        entries = [(1, 6, -1), (2, 6, 12345), (4, 4, -1), (16, 6, -1), (32, 0, -1)]
        wanted = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
        for step in self.each_edit():
            target = self.put("conf.yml", "a: 1\n", 0o640)
            try:
                os.setxattr(target, "system.posix_acl_access", wanted)
            except OSError:
                self.skipTest("this file system has no access lists")
            self.assert_end(self.run_steps(step), 0)
            self.assertEqual(os.getxattr(target, "system.posix_acl_access"), wanted, step["type"])
            target.unlink()

    def test_a_line_end_in_a_name_forges_no_match(self):
        self.put("a\nb:1:forged", "needle\n")
        outcome = self.run_steps(self.step("search_files", pattern="needle"))
        self.assertEqual(outcome.steps[0]["output"], "a?b:1:forged:1:needle\n")
        self.assertEqual(outcome.steps[0]["result"]["matches"][0]["path"], "a\nb:1:forged")

    def test_the_runners_outputs_are_its_own(self):
        self.job_directory = self.workspace  # as --job job.json in the workspace
        self.result_path, self.journal_file = self.workspace / "result.json", self.workspace / "journal.jsonl"
        self.put("outputs/step-1.txt", "x")
        outcome = self.run_steps(self.step("list_tree", path="."))
        self.assertNotIn("outputs", outcome.steps[0]["output"])


sba.main(__name__)
