# SPDX-License-Identifier: Apache-2.0
"""The aarch64 binary: what it is, and end-to-end tests that it passes under qemu-user (see `cynode-sba` here).

Left out is what qemu-user 7.2 cannot show: what strace does to system calls, a signal to the runner by the number that
this side knows, little memory, and speed. It knows no openat2 either, so files are opened by the strict walk of Linux
before 5.6.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
BINARY = HERE.parents[1] / "build/release-arm64/cynode-sba"
os.environ.update(SBA_BINARY=str(HERE / "cynode-sba"), SBA_BUILD="release")
sys.path.insert(0, str(HERE.parent / "e2e"))

SHARED = """
    test_pid1.AsPid1
    test_jobs.Commands
    test_files.Files.test_write_then_read
    test_files.Files.test_a_file_without_end_obeys_the_deadline
    test_patches.Patches.test_writes_through_no_link
    test_patches.Patches.test_leaves_the_workspace_by_no_name
    test_patches.Patches.test_takes_what_is_large
    test_patches.Patches.test_begin_patch_is_as_safe
    test_http.Http.test_a_name_that_does_not_resolve
    test_http.Http.test_a_unix_socket_and_its_path
    test_outside.Nginx.test_a_private_authority
    test_agent.TheLoop.test_tools_work_in_the_workspace_in_both_formats
    test_agent.ResumeAndReplay.test_a_replay_needs_no_model_and_gives_the_same_or_says_what_differs
"""


class Program(unittest.TestCase):
    def test_is_static_aarch64_and_small(self):
        done = subprocess.run(["readelf", "-W", "-h", "-l", "-d", BINARY], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"Machine:\s+AArch64")
        self.assertNotIn("INTERP", done.stdout)
        self.assertNotIn("NEEDED", done.stdout)
        self.assertLessEqual(os.path.getsize(BINARY), 5_000_000)

    def test_pages_of_64_kib(self):
        # Some aarch64 kernels have them; a segment that does not begin on one is not loaded there.
        done = subprocess.run(["readelf", "-W", "-l", BINARY], capture_output=True, text=True, check=True)
        alignments = [int(line.split()[-1], 16) for line in done.stdout.splitlines() if line.strip().startswith("LOAD")]
        self.assertTrue(alignments and min(alignments) >= 0x10000, done.stdout)

    def test_says_the_same_version_as_the_native_one(self):
        said = [subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")
                for binary in (os.environ["SBA_BINARY"], HERE.parents[1] / "build/release/cynode-sba")]
        self.assertEqual(said[0][0], said[1][0])

    def test_integers_and_floats_of_bundled_bytecode(self):
        numbers = "print(require('sba.util.json').encode({math.maxinteger, 0.1}), string.pack('j', 1):byte(1))"
        done = subprocess.run([os.environ["SBA_BINARY"], "--lua", "-e", numbers], capture_output=True, text=True)
        self.assertEqual(done.stdout, "[9223372036854775807,0.1]\t1\n", done.stderr)


class Examples(unittest.TestCase):
    def test_examples(self):
        # All but `resume`, whose job kills the runner: PID 1 is out of reach for those below it.
        names = sorted(path.parent.name for path in EXAMPLES.glob("*/job.json") if path.parent.name != "resume")
        done = subprocess.run([EXAMPLES / "run", "--binary", os.environ["SBA_BINARY"], *names], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"All {len(names)} examples ended as expected.", done.stdout)


def wanting():
    """What is not there to run the tests, or None."""
    from process_case import has_namespaces
    if not BINARY.exists():
        return "build/release-arm64 is not built; scripts/build release-arm64 does that"
    if not shutil.which("qemu-aarch64-static"):
        return "there is no qemu-aarch64-static"
    return None if has_namespaces() else "no PID namespace is to be had here"


def load_tests(loader, own, _):
    return unittest.TestSuite([own, loader.loadTestsFromNames(SHARED.split())])


reason = wanting()
if reason:
    print(f"skipped: {reason}")
    sys.exit(77)
unittest.main(verbosity=2)
