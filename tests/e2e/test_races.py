# SPDX-License-Identifier: Apache-2.0
"""A directory of the workspace and a link to the outside change places without end while thousands of reads, writes, listings,
searches and transactions run: nothing of the outside is seen, nothing there is changed. With openat2 and without it."""
import os
import pathlib
import subprocess

import sba

TOOLS = os.environ["SBA_TOOLS"]
SCRIPT = pathlib.Path(__file__).with_name("races.lua")
ROUNDS = (1500 if sba.IS_DEV else 6000) // (1 if sba.LONG else 4)


class Races(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        self.outside = self.root / "outside"
        for directory in (self.outside, self.outside / "sub", self.outside / "made", self.outside / "deep"):
            directory.mkdir()
        for name in ("file", "sub/file", "outsider", "written", "appended", "staged", "victim", "sub/victim"):
            (self.outside / name).write_bytes(b"SECRET".ljust(31337, b"!"))
        for path in (self.outside, *self.outside.rglob("*")):
            self.give(path)
        self.put("dir/file", "inside")
        self.put("dir/sub/file", "inside")

    def snapshot(self):
        """Everything outside: names, modes, times of change, contents."""
        found = {}
        for path in (self.outside, *sorted(self.outside.rglob("*"))):
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else None
            found[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, content)
        return found

    def race(self, first, second, wrapper, kinds):
        """Runs the work while two names are exchanged; gives {kind: (succeeded, refused)}."""
        attacker = subprocess.Popen([f"{TOOLS}/exchange", str(first), str(second)], **sba.ordinary_user())
        try:
            victim = subprocess.run([*wrapper, sba.BINARY, "--lua", str(SCRIPT), str(self.workspace), str(ROUNDS), *kinds],
                                    stdin=subprocess.DEVNULL, capture_output=True, timeout=300, text=True, errors="replace",
                                    **sba.ordinary_user())
            self.assertIsNone(attacker.poll(), "the attacker gave up, so nothing was tried")
        finally:
            attacker.kill()
            attacker.wait()
        self.assertEqual(victim.returncode, 0, victim.stdout + victim.stderr)
        counts = {}
        for line in victim.stdout.splitlines():
            kind, succeeded, refused = line.split()
            counts[kind] = int(succeeded), int(refused)
        return counts

    def check(self, target, wrapper=(), name="dir", kinds=()):
        os.symlink(target, self.workspace / "link")
        self.give(self.workspace / "link")
        before = self.snapshot()
        counts = self.race(self.workspace / name, self.workspace / "link", wrapper, kinds)
        self.assertEqual(self.snapshot(), before)
        for kind in ("read",) if kinds else ("read", "write", "stat", "tree", "transaction"):  # or the two never met
            self.assertGreater(min(counts[kind]), 0, f"{kind}: {counts[kind]}")
        left = [path for path in self.outside.rglob(".sba-*")]
        self.assertEqual(left, [])

    def test_a_relative_link(self):
        self.check("../outside")

    def test_an_absolute_link(self):
        self.check(str(self.outside))

    def test_a_link_to_a_file(self):
        self.check("../../outside/file", name="dir/file", kinds=("read", "search", "files"))

    def test_a_link_to_a_file_without_openat2(self):
        self.check("../../outside/file", [f"{TOOLS}/without", "openat2", "ENOSYS"], name="dir/file", kinds=("read", "search", "files"))

    def test_a_fifo(self):
        """Whoever opened it as a file is opened would wait for somebody to write to it."""
        os.mkfifo(self.workspace / "fifo")
        self.give(self.workspace / "fifo")
        counts = self.race(self.workspace / "dir/file", self.workspace / "fifo", (), ("read", "search", "files"))
        self.assertGreater(min(counts["read"]), 0)

    def test_without_openat2_enosys(self):
        self.check("../outside", [f"{TOOLS}/without", "openat2", "ENOSYS"])

    def test_without_openat2_eperm(self):
        self.check(str(self.outside), [f"{TOOLS}/without", "openat2", "EPERM"])


if __name__ == "__main__":
    sba.main()
