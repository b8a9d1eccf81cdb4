# SPDX-License-Identifier: Apache-2.0
"""Every way out of the workspace, tried with every step that takes a path, and raced: names change places while the
steps run. With openat2 and without it."""
import os
import pathlib
import socket
import stat
import subprocess

import sba

WRAPPERS = ((), sba.without("openat2"), sba.without("openat2", "EPERM"))


class Escapes(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        self.turn = 0
        self.outside, self.sibling = self.root / "outside", self.root / "workspace-evil"
        for directory in (self.outside, self.sibling):
            directory.mkdir()
            (directory / "file").write_text("SECRET")
            self.give(directory, directory / "file")
        self.put("in/side/file", "inside\n")

    def link(self, path, target):
        os.symlink(target, self.workspace / path)
        self.give(self.workspace / path)

    def steps(self, path):
        yield self.read_file(path)
        yield self.write_file(path, "FROM INSIDE")
        yield self.write_file(path, "FROM INSIDE", append=True)
        yield self.step("list_tree", path=path)
        yield self.step("search_files", path=path, pattern="S.CRET")

    def outside_is_whole(self):
        for directory in (self.outside, self.sibling):
            self.assertEqual([path.name for path in directory.iterdir()], ["file"])
            self.assertEqual((directory / "file").read_text(), "SECRET")
        self.assertEqual(sorted(os.listdir(self.root)), ["job", "outside", "workspace", "workspace-evil"])

    def wrappers(self):
        """All of them, or each in its turn."""
        self.turn += 1
        return WRAPPERS if sba.LONG else WRAPPERS[self.turn % 3:][:1]

    def refused(self, path, codes=("path_escape",), steps=None):
        for step in steps or self.steps(path):
            for wrapper in self.wrappers():
                with self.subTest(path=path, step=step["type"], wrapper=wrapper):
                    outcome = self.run_steps(step, wrapper=wrapper)
                    entry = outcome.steps[0]
                    self.assert_end(outcome, 1, "step_failed")
                    self.assertIn(entry["error_code"], codes)
                    if entry["error_code"] == "path_escape":
                        self.assertIn("path escapes workspace", entry["error"])
                        self.assertIn("path escapes workspace", outcome.message)
                    self.assertEqual(entry.get("result", {}).get("matches", []), [])
                    self.assertNotIn("stdout", entry.get("result", {}))
                    self.assertNotIn(b"SECRET", outcome.result_bytes)
        self.outside_is_whole()

    def test_paths_with_dots_and_absolute_paths(self):
        for path in ("..", "../outside/file", "in/../../outside/file", "in/../../workspace-evil/file",
                     "./.././outside/file", "missing/../../outside/file", f"{self.outside}/file",
                     f"{self.sibling}/file", f"{self.workspace}-evil/file", f"{self.workspace}/../outside/file",
                     f"{self.workspace}/in/../../outside/file", "/etc/passwd", "/proc/self/root/etc/passwd",
                     "/proc/self/cwd", "/", "//etc/passwd"):
            self.refused(path)

    def test_links_that_lead_out(self):
        for name, target in (("file", "../outside/file"), ("directory", "../outside"), ("parent", ".."),
                             ("absolute", self.outside / "file"), ("absolute_directory", self.outside),
                             ("dangling", "../outside/missing"), ("back", self.workspace / "in/side/file"),
                             ("chain", "chain2"), ("chain2", "in/chain3"), ("in/chain3", "../../outside/file"),
                             ("in/up", "..")):
            self.link(name, target)
        for path in ("file", "directory", "directory/file", "directory/missing", "absolute", "absolute_directory",
                     "absolute_directory/file", "dangling", "chain", "parent", "parent/outside/file",
                     "parent/workspace/in/side/file", "back", "in/up/directory/file", "in/side/../up/file"):
            self.refused(path)
        for wrapper in WRAPPERS:
            searched = self.run_steps(self.step("search_files", pattern="S.CRET|inside"), wrapper=wrapper).steps[0]
            self.assertEqual([match["path"] for match in searched["result"]["matches"]], ["in/side/file"])

    def test_magic_links(self):
        for name, target in (("root", "/proc/self/root"), ("cwd", "/proc/self/cwd"), ("fd", "/proc/self/fd/0"),
                             ("exe", "/proc/self/exe"), ("up", "../" * 20 + "proc/self/root")):
            self.link(name, target)
        for path in ("root", "root/etc/passwd", "cwd", "cwd/file", "fd", "exe", "up", "up/etc/passwd"):
            self.refused(path)

    def test_magic_links_inside(self):
        # Even where the workspace holds proc itself, its links lead nowhere.
        self.workspace = sba.pathlib.Path("/proc/self")
        for path in ("root/etc/passwd", "cwd/job", "exe", "fd/0"):
            self.refused(path, ("path_escape", "too_many_links"),
                         [self.read_file(path), self.step("list_tree", path=path)])

    def test_links_in_a_circle(self):
        self.link("a", "b")
        self.link("b", "a")
        self.link("self", "self/x")
        for path in ("a", "a/x", "self"):
            self.refused(path, ("too_many_links",))

    def test_fifos_sockets_and_devices(self):
        self.fifo("fifo")
        if sba.UID:
            os.mknod(self.workspace / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))  # zeros without end
        listening = self.closing(socket.socket(socket.AF_UNIX))
        listening.bind(str(self.workspace / "socket"))
        for path in list(self.workspace.iterdir()):
            self.give(path)
            self.refused(path.name, ("not_a_file",), [self.read_file(path.name), self.write_file(path.name, "x")])
        outcome = self.run_steps(self.step("list_tree"), self.step("search_files", pattern="x", path="."))
        self.assert_end(outcome, 0)
        types = {entry["name"]: entry["type"] for entry in outcome.steps[0]["result"]["children"]}
        device = {"device": "device"} if sba.UID else {}
        self.assertEqual(types, {"fifo": "fifo", "socket": "socket", "in": "directory", **device})

    def test_what_stays_inside_works(self):
        self.link("link", "in/side/file")
        self.link("directory", "in/side")
        self.link("in/up", "../in/./side/..")
        paths = ("link", "directory/file", "in/up/side/file", "directory/../side/file",
                 f"{self.workspace}//in/side/file", "in/side/../side/file")
        for wrapper in WRAPPERS:
            outcome = self.run_steps(*(self.read_file(path) for path in paths), wrapper=wrapper)
            self.assertEqual([step["result"]["content"] for step in outcome.steps], ["inside\n"] * len(paths))
            outcome = self.run_steps(self.write_file("link", "through\n"), self.step("list_tree", path="directory"),
                                     self.step("search_files", path="link", pattern="^through$"),
                                     self.write_file("in/side/file", "inside\n"), wrapper=wrapper)
            self.assert_end(outcome, 0)
            self.assertEqual(outcome.steps[1]["result"]["children"][0]["name"], "file")
            self.assertEqual(outcome.steps[2]["result"]["matches"][0]["line"], 1)
            self.assertTrue((self.workspace / "link").is_symlink())

    @sba.wants("strace")
    def test_openat2_that_gives_eagain(self):
        # As while something is renamed elsewhere: then our own walk finds the way, as strictly.
        self.link("out", "../outside")
        job = self.job(self.read_file("in/side/file"), self.read_file("out/file"))
        steps = self.run_job(job, wrapper=sba.injecting("openat2", "error=EAGAIN:when=2+")).steps
        self.assertEqual((steps[0].get("error"), steps[1]["error_code"]), (None, "path_escape"))

    def test_a_name_that_is_too_long_is_no_shorter_one(self):
        self.put("n" * 255, "another's")
        for wrapper in WRAPPERS:
            step = self.run_steps(self.read_file("n" * 256), wrapper=wrapper).steps[0]
            self.assertEqual(step.get("error_code"), "name_too_long", step)


SCRIPT = pathlib.Path(__file__).with_name("races.lua")
READING = ("read", "search", "files")  # kinds of it
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
            found[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino,
                                content)
        return found

    def race(self, first, second, wrapper, kinds):
        """While two names are exchanged; gives {kind: (succeeded, refused)}."""
        attacker = subprocess.Popen([sba.TOOLS / "exchange", str(first), str(second)], **sba.ordinary_user())
        try:
            command = [*wrapper, sba.BINARY, "--lua", str(SCRIPT), str(self.workspace), str(ROUNDS), *kinds]
            victim = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, text=True,
                                    errors="replace", **sba.ordinary_user())
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
        self.assertEqual(list(self.outside.rglob(".sba-*")), [])

    def test_a_relative_link(self):
        self.check("../outside")

    def test_an_absolute_link(self):
        self.check(str(self.outside))

    def test_a_link_to_a_file(self):
        self.check("../../outside/file", name="dir/file", kinds=READING)

    def test_a_link_to_a_file_without_openat2(self):
        self.check("../../outside/file", WRAPPERS[1], name="dir/file", kinds=READING)

    def test_a_fifo(self):
        # Opened as a file, it would wait for a writer.
        self.fifo("fifo")
        counts = self.race(self.workspace / "dir/file", self.workspace / "fifo", (), READING)
        self.assertGreater(min(counts["read"]), 0)

    def test_without_openat2_enosys(self):
        self.check("../outside", WRAPPERS[1])

    def test_without_openat2_eperm(self):
        self.check(str(self.outside), WRAPPERS[2])


sba.main(__name__)
