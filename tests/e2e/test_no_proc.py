# SPDX-License-Identifier: Apache-2.0
"""The runner among other processes, not PID 1, and without a /proc that tells: none, or that of another PID namespace. What left its
command's process group lives on there."""
import unittest

import sba
import test_pid1

ORPHAN = "sh -c 'trap \"\" TERM; sleep 600' </dev/null >/dev/null 2>&1 &"


@unittest.skipUnless(sba.MAY_MOUNT, "nothing can be mounted here, and /proc not be taken away")
@unittest.skipIf(sba.IS_DEV, "AddressSanitizer wants /proc")
class WithoutProc(test_pid1.ProcessCase):
    wrapper = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *sba.AS_USER]

    def run_there(self, *steps, **fields):
        done = self.run_job(self.job(*steps, **fields), wrapper=self.wrapper, **sba.AS_ROOT)
        self.assertIsNotNone(done.result, done.stdout + done.stderr)
        return done

    def assert_gone(self):
        self.assertEqual(self.left(), [], "the runner had ended all before it ended")

    def test_commands_and_files(self):
        done = self.run_there(self.step("run_command", shell="ls /proc | wc -l; echo said"), self.step("write_file", path="a", content="x"),
                              self.step("list_tree", path="."), self.step("run_command", shell="exit 7"))
        self.assertEqual((done.exit, done.result["failure_code"], done.result["steps"][3]["exit_code"]), (1, "step_failed", 7), done.result)
        self.assertIn("said\n", done.result["steps"][0]["output"])

    def test_what_a_command_left_is_ended_with_the_job(self):
        done = self.run_there(self.step("run_command", shell=ORPHAN + " echo started"))
        self.assertEqual((done.exit, done.result["steps"][0]["output"]), (0, "started\n"), done.result)
        self.assert_gone()

    def test_the_deadline_ends_all(self):
        done = self.run_there(self.step("run_command", shell=ORPHAN + " echo said; trap '' TERM; sleep 600"), max_runtime_seconds=1)
        self.assertEqual((done.exit, done.result["status"], done.result["steps"][0]["result"]["stdout"]), (124, "timeout", "said\n"), done.result)
        self.assert_gone()

    def test_a_step_that_is_too_slow_ends_its_group_and_the_job_the_rest(self):
        done = self.run_there(self.step("run_command", shell=ORPHAN + " sleep 600", timeout_seconds=1))
        self.assertEqual((done.exit, done.result["failure_code"]), (124, "timeout"), done.result)
        self.assert_gone()

    def test_a_cancel_ends_all(self):
        begun = self.workspace / "begun"
        process = self.start(self.job(self.step("run_command", shell=ORPHAN + " touch begun; sleep 600")), wrapper=self.wrapper, **sba.AS_ROOT)
        sba.wait_for(begun.exists, "the command to begin")
        process.terminate()
        done = self.outcome_of(process)
        self.assertEqual((done.exit, done.result["failure_code"]), (143, "cancelled"), done.result)
        self.assert_gone()

    def test_others_live_on(self):
        others = self.start_others()
        self.assertEqual(self.run_there(self.step("run_command", shell=ORPHAN + " sleep 600"), max_runtime_seconds=1).exit, 124)
        self.assertEqual([other.poll() for other in others], [None, None])

    def test_hidden_memory_counts_accuse_nobody(self):
        done = self.run_there(self.step("run_command", shell="kill -KILL $$"))
        self.assertEqual(done.result["steps"][0]["error_code"], "step_failed", done.result)


class WithTheProcOfOthers(WithoutProc):
    """The runner and its parent are in a PID namespace, where /proc is still that of the one outside. The namespace ends with its first
    process, which looks whether it is alone by then."""
    wrapper = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", '"$@"; code=$?; kill -0 -1 2>/dev/null && code=99; exit $code', "sh", *sba.AS_USER]

    test_a_cancel_ends_all = None  # the signal would go to unshare
    test_others_live_on = None  # they are in another namespace


if __name__ == "__main__":
    sba.main()
