# SPDX-License-Identifier: Apache-2.0
"""The one file in other people's images: all examples in roots like busybox', Alpine's and Debian's, and what it opens there.

The roots are made by `make`; Debian's is kept in the user's cache directory, since debootstrap takes a minute or two.
"""
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
BINARY = pathlib.Path(os.environ["SBA_BINARY"])
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "cynode-sba/roots")
USER = ["/usr/sbin/chroot", "--userspec=54321:54321", "--groups="]

# What steers programs that are linked to more than they need.
STEERED = {"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "TZ": "Europe/Berlin", "LD_PRELOAD": "/etc/steered/x.so",
           "LD_LIBRARY_PATH": "/etc/steered", "OPENSSL_CONF": "/etc/steered/openssl.cnf", "OPENSSL_MODULES": "/etc/steered",
           "LUA_PATH": "/etc/steered/?.lua", "LUA_INIT": "@/etc/steered/init.lua", "CURL_HOME": "/etc/steered",
           "HOME": "/etc/steered", "NLSPATH": "/etc/steered/%N", "TERMINFO": "/etc/steered", "HOSTALIASES": "/etc/steered/hosts"}
STEPS = [("write_file", {"path": "notes/a.txt", "content": "one\ntwo\n"}), ("read_file", {"path": "notes/a.txt"}),
         ("apply_unified_diff", {"diff": "--- a/notes/a.txt\n+++ b/notes/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"}),
         ("search_files", {"pattern": "th[r]ee"}), ("list_tree", {"path": "."}),
         ("run_command", {"command": "cat", "args": ["notes/a.txt"]})]


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **options)


def make(kind, directory):
    done = run(HERE / "make", kind, directory)
    if done.returncode:
        raise AssertionError(f"tests/roots/make {kind}: {done.stdout}{done.stderr}")
    return directory


class Root:
    """What holds in every root. `path` is where it is."""

    def inside(self, *command, **options):
        """Runs a command with the machine's devices and processes mounted in the root, for as long as it runs."""
        script = 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec "$@"'
        return run("unshare", "--mount", "sh", "-c", script, str(self.path), *command, **options)

    def test_says_its_version(self):
        shutil.copy(BINARY, self.path / "tmp/cynode-sba")
        self.addCleanup((self.path / "tmp/cynode-sba").unlink)
        done = run(*USER, self.path, "/tmp/cynode-sba", "--version", env={})
        self.assertRegex(done.stdout, r"^cynode-sba \d+\.\d+\.\d+ \(", done.stderr)

    def test_all_examples(self):
        done = self.inside(TOP / "examples/run", "--binary", BINARY, "--root", self.path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("skipped", done.stdout)
        for example in (path.parent.name for path in (TOP / "examples").glob("*/job.json")):
            self.assertIn(f"\n== {example}: ", done.stdout)


class Small(Root):
    """A root that is made for the test and goes with it."""

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="sba-roots-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.directory.chmod(0o755)
        cls.path = make(cls.kind, cls.directory / "root")


class Busybox(Small, unittest.TestCase):
    kind = "busybox"

    def trace(self, job, **environment):
        """Runs a job under strace. Returns its result and the paths that the runner itself named in system calls, but for the
        job's directory, the workspace and the kernel's own files."""
        place, log = self.path / "place", self.directory / "trace"
        shutil.rmtree(place, ignore_errors=True)
        for directory in (place, place / "workspace"):
            directory.mkdir()
            os.chown(directory, 54321, 54321)
        shutil.copy(BINARY, place / "cynode-sba")
        (place / "job.json").write_text(json.dumps(
            {"protocol_version": "1.0", "job_id": "j", "task_id": "t",
             "constraints": {"max_runtime_seconds": 60, "max_output_bytes": 100000}, **job}))
        self.inside("strace", "-f", "-o", log, "-e", "trace=%file", *[f"-E{name}={value}" for name, value in environment.items()],
                    *USER, self.path, "/place/cynode-sba", "--job", "/place/job.json", "--result", "/place/result.json",
                    "--workspace", "/place/workspace", env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        return json.loads((place / "result.json").read_text()), self.paths_of_the_runner(log.read_text())

    # Where commands may write: confinement looks for these directories, and reads nothing in them.
    LOOKED_FOR = {"/dev", "/proc", "/tmp", "/var", "/var/tmp", "/etc", "/etc/steered"}

    def paths_of_the_runner(self, trace):
        lines, runner, commands, paths = trace.splitlines(), None, set(), set()
        for line in lines:
            thread, call = line.split(maxsplit=1)
            program = re.match(r'execve\("([^"]*)".*\) = 0$', call)
            if program and program[1] == "/place/cynode-sba":
                runner = thread
            elif runner and thread != runner and call.startswith("execve("):
                commands.add(thread)
            elif runner and thread not in commands:
                paths.update(path for path in re.findall(r'"(/[^"]*)"', call)
                             if not (path + "/").startswith(("/place/", "/proc/self/", f"/proc/{runner}/", "/sys/fs/cgroup/")))
        self.assertTrue(runner, trace)
        return paths - self.LOOKED_FOR

    def test_a_job_opens_nothing_of_the_image(self):
        result, paths = self.trace({"steps": [{"type": type, "arguments": arguments} for type, arguments in STEPS]}, **STEERED)
        self.assertEqual(result["status"], "success", result)
        self.assertEqual(result["steps"][-1]["result"]["stdout"], "one\nthree\n")
        self.assertLessEqual(paths, {"/dev/null", "/bin/cat", "/sbin/cat", "/usr/bin/cat", "/usr/sbin/cat"})

    def test_names_and_tls_take_what_they_need_and_no_more(self):
        """A model at a URL: the names of hosts, and whom to trust; no loader, no locale, no name service, no OpenSSL's file."""
        job = {"steps": [], "execution_mode": "agent_inference", "inference": {"allowed_models": ["m"]},
               "constraints": {"max_runtime_seconds": 3, "max_output_bytes": 100000}}
        (self.path / "etc/hosts").write_text("127.0.0.1 model.example\n")
        result, paths = self.trace(job, INFERENCE_PROXY_URL="https://model.example:1", **STEERED)
        self.assertIn("model.example", result["failure_message"])
        self.assertIn("/etc/hosts", paths)
        trusted = {path for path in paths if re.search(r"ca-|cert", path)}
        self.assertTrue(trusted)
        self.assertLessEqual(paths - trusted, {"/dev/null", "/etc/hosts", "/etc/resolv.conf"})


class Musl(Small, unittest.TestCase):
    """As Alpine is: musl, loaded at run time; what the examples compile is loaded by it."""
    kind = "musl"

    def test_has_its_own_loader(self):
        (self.path / "tmp/a.c").write_text('#include <stdio.h>\nint main(void) { return puts("loaded") < 0; }\n')
        done = run("/usr/sbin/chroot", self.path, "/bin/sh", "-c", "cc -o /tmp/a /tmp/a.c && /tmp/a", env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(done.stdout, "loaded\n", done.stderr)
        self.assertIn("/lib/ld-musl-", run("readelf", "-lW", self.path / "tmp/a").stdout)


@unittest.skipUnless(shutil.which("debootstrap"), "there is no debootstrap")
class Debian(Root, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        CACHE.mkdir(parents=True, exist_ok=True)
        lock = open(CACHE / "lock", "w")
        cls.addClassCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        cls.path = CACHE / "debian"
        if not cls.path.exists():
            print("making a Debian with debootstrap, the first time only", flush=True)
            make("debian", cls.path)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: chroot and mounts want root")
        sys.exit(77)
    unittest.main(verbosity=2)
