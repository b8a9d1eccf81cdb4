# SPDX-License-Identifier: Apache-2.0
"""The two commands, tests/run and examples/run, in places that make it hard: what they build and test stands aside."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
import tidy  # noqa: E402

BINARY = os.environ["SBA_BINARY"]
IS_ROOT = os.geteuid() == 0
NOTHING = "#!/bin/sh\n"
CTEST = """#!/bin/sh
echo "tested in $PWD with $*, TMPDIR=${TMPDIR-none}"
grep SigIgn /proc/self/status
[ "$(id -u)" -ne 0 ] || setpriv --reuid 54321 --regid 54321 --clear-groups cat "$PWD/tests/run" >/dev/null || exit 99
exit 5
"""


class Place(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="sba-test-"))
        self.addCleanup(shutil.rmtree, self.place)

    def put(self, path, text):
        path = self.place / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_here(self, *command, timeout=60, **options):
        return subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout, **options)


class TestsRun(Place):
    def setUp(self):
        super().setUp()
        self.put("bin/ctest", CTEST)
        for script in ("install", "build"):
            self.put(f"checkout/scripts/{script}", NOTHING)
        self.put("checkout/build/dev/left-behind", "")
        kept = {"run", "skips.py"}
        shutil.copytree(TOP / "tests", self.place / "checkout/tests", ignore=lambda directory, names: {*names} - kept)

    def start(self, *before, preexec_fn=None, **variables):
        plain = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
        environment = {**plain, "PATH": f"{self.place}/bin:{os.environ['PATH']}", **variables}
        return self.run_here(*before, self.place / "checkout/tests/run", "-R", "some thing", env=environment,
                             preexec_fn=preexec_fn)

    @unittest.skipUnless(IS_ROOT, "only root tests as another user")
    def test_a_directory_that_only_root_may_enter(self):
        done = self.start()
        self.assertIn(f"An ordinary user cannot reach {self.place}/checkout: testing a copy, /var/tmp/", done.stdout)
        copy = pathlib.Path(done.stdout.split("tested in ")[1].split(" with ")[0])
        self.assertIn("-R some thing", done.stdout)
        self.assertEqual(done.returncode, 5, done.stdout)
        self.assertEqual((str(copy)[:9], copy.parent.exists()), ("/var/tmp/", False))

    def test_a_directory_that_all_may_enter(self):
        self.place.chmod(0o755)
        done = self.start(SBA_LONG="")
        self.assertRegex(done.stdout, f"tested in {self.place}/checkout with .* -LE \\^long\\$ -R some thing")
        self.assertNotIn("-LE", self.start(SBA_LONG="1").stdout)
        self.assertEqual(done.returncode, 5, done.stdout)

    def test_what_failed_runs_once_more_alone(self):
        self.place.chmod(0o755)
        first, second = self.start().stdout.split("== What failed runs once more, alone.")
        self.assertRegex(first, "tested in .* -j [0-9]+ .*-R some thing")
        self.assertRegex(second, "tested in .* --rerun-failed .*-R some thing")
        self.assertNotIn(" -j ", second)
        self.put("bin/ctest", NOTHING)
        self.assertEqual(self.start().returncode, 0)

    def test_why_tests_were_skipped_is_told_before_the_closing_lines(self):
        self.place.chmod(0o755)
        self.put("checkout/log", """1/2 Test: dev.a
Output:
test_b (__main__.A.test_b) ... skipped 'no tmux here'
test_c (__main__.A.test_c)
What it promises. ... skipped "the kernel's too old"
test_d (__main__.A.test_d) ... skipped 'no tmux here'
test_e (__main__.A.test_e) ... ok
2/2 Test: vendor
skipped: nothing is built
""")
        logs = "build/dev/Testing/Temporary"
        self.put("bin/ctest", f"#!/bin/sh\nmkdir -p {logs}; cp log {logs}/LastTest.log; "
                              "echo 100% tests passed, 0 tests failed out of 2; echo Total\n")
        done = self.start()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.splitlines()[-7:], [
            "== Skipped, which is no failure:", "dev.a: 2 tests: no tmux here", "dev.a: 1 test: the kernel's too old",
            "vendor: 1 test: nothing is built", "", "100% tests passed, 0 tests failed out of 2", "Total"])

    def test_signals_that_its_parent_ignores(self):
        self.place.chmod(0o755)
        ignored = self.start(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)).stdout
        self.assertIn("SigIgn:\t0000000000000000", ignored)

    def test_root_who_cannot_become_another(self):
        in_namespace = ["unshare", "--user", "--map-root-user"]
        if not shutil.which("unshare") or self.run_here(*in_namespace, "true").returncode:
            self.skipTest("the kernel gives no user namespaces here")
        done = self.start(*in_namespace)
        self.assertIn("tests/run: root cannot become user 54321 here", done.stdout)
        self.assertEqual(done.returncode, 1, done.stdout)


class ExamplesRun(Place):
    def setUp(self):
        super().setUp()
        self.place.chmod(0o755)
        (self.place / "bin").mkdir()
        for tool in ("sh", "bash", "env", "basename", "cat", "chmod", "chown", "cp", "dirname", "head", "id", "mkdir",
                     "mktemp", "realpath", "rm", "setpriv"):
            (self.place / "bin" / tool).symlink_to(shutil.which(tool))
        shutil.copytree(TOP / "examples/read-and-search", self.place / "examples/fix-failing-test")
        for name in ("run", "compare.lua"):
            shutil.copy(TOP / "examples" / name, self.place / "examples" / name)

    def examples(self, *names):
        """With no program to build with, and without jq."""
        return self.run_here(self.place / "examples/run", "--binary", BINARY, *names,
                             env={"PATH": str(self.place / "bin")})

    def test_one_result_is_shown_indented(self):
        done = self.examples()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn('\n  "job_id": "read-and-search",\n', done.stdout)
        self.assertIn("\nAll 1 examples ended as expected.\n", done.stdout)

    def test_nothing_is_left(self):
        # No process, also of a runner that was killed, and no file.
        examples = {path.parent.name for name in ("run", "job.json") for path in (TOP / "examples").glob(f"*/{name}")}
        names = sorted(examples - {"extend"})  # which builds
        self.place.chmod(0o777)
        done = self.run_here(TOP / "examples/run", "--binary", BINARY, *names, timeout=300,
                             env={**os.environ, "TMPDIR": str(self.place)})
        self.assertIn("as expected", done.stdout)
        self.assertEqual(tidy.end(self.place, tidy.GRACE), [])
        self.assertEqual([path.name for path in self.place.iterdir() if path.name not in ("bin", "examples")], [])

    def test_a_failing_example_fails(self):
        self.put("examples/other/run", "#!/bin/sh\nexit 1\n")
        self.put("examples/other/README.md", "another")
        done = self.examples("other")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("1 of 1 examples differ", done.stdout)


unittest.main(verbosity=2)
