# SPDX-License-Identifier: Apache-2.0
"""The binary alone: what it needs of the image (nothing), and that it opens no socket."""
import json
import os
import re
import shutil
import subprocess
import unittest

import sba

STEPS = [("write_file", {"path": "notes/a.txt", "content": "one\ntwo\n"}), ("read_file", {"path": "notes/a.txt"}),
         ("apply_unified_diff", {"diff": "--- a/notes/a.txt\n+++ b/notes/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"}),
         ("search_files", {"pattern": "th[r]ee"}), ("list_tree", {"path": "."})]


@unittest.skipIf(sba.IS_DEV, "the dev build is linked to Debian's libraries")
class Release(sba.SandboxCase):
    def test_is_static_and_small(self):
        headers = subprocess.run(["readelf", "-W", "-l", "-d", sba.BINARY], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("INTERP", headers)
        self.assertNotIn("NEEDED", headers)
        self.assertRegex(headers, r"GNU_STACK\s.* RW ")
        self.assertLessEqual(os.path.getsize(sba.BINARY), 5_000_000)

    @unittest.skipIf(os.geteuid() != 0, "chroot wants root")
    def test_runs_in_an_empty_root(self):
        root = self.root / "root"
        for folder in (root, root / "job", root / "workspace"):
            folder.mkdir()
            self.give(folder)
        shutil.copy(sba.BINARY, root / "cynode-sba")
        (root / "job/job.json").write_text(json.dumps(self.job(*(self.step(type, **arguments) for type, arguments in STEPS))))
        done = subprocess.run(["/usr/sbin/chroot", f"--userspec={sba.UID}:{sba.GID}", "--groups=", root, "/cynode-sba"], env={},
                              stdin=subprocess.DEVNULL, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads((root / "job/result.json").read_bytes())
        self.assertEqual([step["status"] for step in result["steps"]], ["success"] * len(STEPS))
        self.assertEqual((root / "workspace/notes/a.txt").read_text(), "one\nthree\n")


class Sockets(sba.SandboxCase):
    def test_a_job_opens_none(self):
        trace = self.job_folder / "trace"
        steps = [*(self.step(type, **arguments) for type, arguments in STEPS), self.step("run_command", command="/bin/true")]
        done = self.run_job(self.job(*steps), wrapper=["strace", "-f", "-o", str(trace), "-e", "trace=%network,%process"],
                            env={"ASAN_OPTIONS": "detect_leaks=0"})
        self.assertEqual(done.exit, 0, done.result or done.stderr)
        calls = re.findall(r"^\d+ +(\w+)\((\w*)", trace.read_text(), re.MULTILINE)
        self.assertIn("execve", {name for name, _ in calls})  # the trace is one of this job
        # The log goes out with send(2), which does not wait where stdout or stderr is the node's socket.
        used = {name for name, first in calls if (name, first) not in (("sendto", "1"), ("sendto", "2"))}
        self.assertEqual(used & {"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg"}, set())


if __name__ == "__main__":
    sba.main()
