# SPDX-License-Identifier: Apache-2.0
"""Commands that multiply as fast as they can. Each job ends in time all the same, and nothing of it is left.

A limit that counts the user's processes bounds them, and they take all processors: nothing else runs beside them.
"""
import os
import unittest

import sba
from process_case import (HOSTILE, PYTHON, WITH_PROC, WITH_THE_PROC_OF_OTHERS, WITHOUT_PROC, HostileCase, ProcessCase,
                          has_namespaces)

# The thousand of the documentation is the release's: the sanitizers slow the runner, not the bomb.
LIMITS = [f"--nproc={min(1000, 500 * os.cpu_count()) // (2 if sba.IS_DEV else 1)}"]


class ForkBombs(HostileCase, ProcessCase):
    def test_a_fork_bomb(self):
        for ending in ({"timeout_seconds": 1}, {}):
            with self.subTest(ending):
                slow = sba.slowness()
                done = self.run_hostile(self.hostile("bomb", **ending), limits=LIMITS, max_runtime_seconds=2)
                self.assertEqual((done.exit, self.first(done)["result"]["stdout"]), (124, "begun\n"), done.result)
                self.assert_in_time(done, 2, slow)

    def test_chains_that_never_stay(self):
        # There is always somebody to reap; the deadline is seen all the same.
        self.put("chains", (sba.TOOLS / "chains").read_bytes(), mode=0o755)
        slow = sba.slowness()
        done = self.run_hostile(self.step("run_command", argv=["./chains", "100"]), limits=["--nproc=2000"],
                                max_runtime_seconds=2)
        self.assertEqual(done.exit, 124, done.result)
        self.assert_in_time(done, 2, slow)

    def test_a_deep_tree_that_takes_all_the_time(self):
        slow = sba.slowness()
        done = self.run_hostile(self.hostile("ladder", 30 * os.cpu_count(), "spin"), max_runtime_seconds=3)
        self.assertEqual(done.exit, 124, done.result)
        self.assertTrue((self.workspace / "reached").exists())
        self.assert_in_time(done, 3, slow)

    def test_others_live_on(self):
        # Of the same user, in the runner's group and in another session.
        others = self.start_others()
        self.run_hostile(self.hostile("bomb"), limits=LIMITS, max_runtime_seconds=1)
        self.assertEqual([other.poll() for other in others], [None, None])


@unittest.skipUnless(has_namespaces(), "no PID namespace is to be had here")
class OfPid1(ProcessCase):
    """No fork slips through what PID 1 sends to everybody, however many there are."""

    def test_with_its_own_proc_that_of_others_and_none(self):
        self.put("hostile.py", HOSTILE.read_bytes())
        bomb = self.step("run_command", argv=[PYTHON, "hostile.py", "bomb"])
        for wrapper in WITH_PROC, WITH_THE_PROC_OF_OTHERS, WITHOUT_PROC:
            if wrapper == WITHOUT_PROC and sba.IS_DEV:
                continue  # AddressSanitizer wants /proc
            with self.subTest(wrapper):
                slow = sba.slowness()
                done = self.run_job(self.job(bomb, max_runtime_seconds=2), **sba.AS_ROOT,
                                    wrapper=[*wrapper, "prlimit", "--nproc=800"])
                self.assertEqual((done.exit, done.steps[0]["result"]["stdout"]), (124, "begun\n"), done.result)
                self.assert_in_time(done, 2, slow)
                sba.wait_for(lambda: not self.left(), "the job's processes to end")


sba.main(__name__)
