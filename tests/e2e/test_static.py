# SPDX-License-Identifier: Apache-2.0
"""The binary alone: what it needs of the image, which is nothing."""
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
    @staticmethod
    def readelf(*options):
        return subprocess.run(["readelf", "-W", *options, sba.BINARY], capture_output=True, text=True, check=True).stdout

    def test_is_static_and_small(self):
        headers = self.readelf("-l", "-d")
        self.assertNotIn("INTERP", headers)
        self.assertNotIn("NEEDED", headers)
        self.assertLessEqual(os.path.getsize(sba.BINARY), 5_000_000)

    def test_is_a_hardened_pie(self):
        headers, sections = self.readelf("-h", "-l", "-d"), self.readelf("-S")
        self.assertRegex(headers, r"Type:\s+DYN")
        self.assertRegex(headers, r"GNU_STACK\s.* RW ")
        self.assertIn("GNU_RELRO", headers)
        self.assertRegex(headers, r"FLAGS.*BIND_NOW")
        self.assertNotIn("TEXTREL", headers)
        segments = re.findall(r"^ +LOAD +\S+ +0x(\w+) +\S+ +\S+ +0x(\w+) +([RWE ]{3}) ", headers, re.MULTILINE)
        flags = [permissions.replace(" ", "") for _, _, permissions in segments]
        self.assertNotIn("RWE", flags)
        self.assertNotIn("WE", flags)
        for name, wanted in ((".text", "RE"), (".rodata", "R"), (".data", "RW")):
            address = int(re.search(rf" \{name} +\w+ +(\w+)", sections)[1], 16)
            at, = [i for i, (start, size, _) in enumerate(segments) if 0 <= address - int(start, 16) < int(size, 16)]
            self.assertEqual(flags[at], wanted, name)

    def test_protects_its_relocated_data_when_it_runs(self):
        start, size = re.search(r"GNU_RELRO +\S+ +0x(\w+) +\S+ +\S+ +0x(\w+)", self.readelf("-l")).groups()
        done = subprocess.run([sba.BINARY, "--lua", "-e", "io.write(io.open('/proc/self/maps'):read('a'))"],
                              capture_output=True, text=True, check=True)
        lines = [line.split() for line in done.stdout.splitlines()]
        maps = [(*(int(part, 16) for part in line[0].split("-")), line[1]) for line in lines if "cynode-sba" in line[-1]]
        base, page = maps[0][0], os.sysconf("SC_PAGESIZE")
        first, last = base + int(start, 16), (base + int(start, 16) + int(size, 16)) // page * page - 1
        for address in (first, last):
            permissions, = [found for begin, end, found in maps if begin <= address < end]
            self.assertEqual(permissions, "r--p", hex(address))

    @unittest.skipIf(os.geteuid() != 0, "chroot wants root")
    def test_runs_in_an_empty_root(self):
        root = self.root / "root"
        for directory in (root, root / "job", root / "workspace"):
            directory.mkdir()
            self.give(directory)
        shutil.copy(sba.BINARY, root / "cynode-sba")
        (root / "job/job.json").write_text(json.dumps(self.job(*(self.step(type, **arguments) for type, arguments in STEPS))))
        done = subprocess.run(["/usr/sbin/chroot", f"--userspec={sba.UID}:{sba.GID}", "--groups=", root, "/cynode-sba"], env={},
                              stdin=subprocess.DEVNULL, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads((root / "job/result.json").read_bytes())
        self.assertEqual([step["status"] for step in result["steps"]], ["success"] * len(STEPS))
        self.assertEqual((root / "workspace/notes/a.txt").read_text(), "one\nthree\n")


if __name__ == "__main__":
    sba.main()
