# SPDX-License-Identifier: Apache-2.0
"""A session: the runner waits as PID 1, rounds come into its namespaces as a container's exec brings them."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import sba
import test_pid1 as pid1

ENTER = ["nsenter", "--mount", "--root", "--pid"] if sba.UID else ["nsenter", "--user", "--preserve-credentials", "--mount", "--pid"]


@unittest.skipUnless(pid1.has_namespaces(), "no PID namespace is to be had here")
class SessionTest(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        self.session = subprocess.Popen([*pid1.NAMESPACE, "--pid", "--fork", "--mount-proc", *sba.AS_USER, sba.BINARY, "--idle"],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first = None
        self.addCleanup(self.end)
        sba.wait_for(self.is_waiting, "the runner to wait")

    def end(self):
        """The first process must be killed itself: becoming another user, it forgot that it was to die with its parent."""
        if self.session.poll() is None:
            os.kill(self.first or self.session.pid, signal.SIGKILL)
        self.session.communicate(timeout=60)

    def is_waiting(self):
        children = pathlib.Path(f"/proc/{self.session.pid}/task/{self.session.pid}/children").read_text().split()
        self.first = int(children[0]) if children else None
        return self.first and self.status("Name") == "sba" and self.status("SigCgt") != "0" * 16 and self.sleeps()

    def sleeps(self):
        return self.status("State").startswith("S")

    def status(self, name):
        for line in pathlib.Path(f"/proc/{self.first}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return line.split(":", 1)[1].strip()

    def enter(self, *command):
        return [*ENTER, "--target", str(self.first), *sba.AS_USER, *command]

    def start_round(self, job):
        process = subprocess.Popen(self.enter(sba.BINARY, "--stdin", "--workspace", str(self.workspace)), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(json.dumps(job).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def round(self, *scripts, **job):
        """A round of these scripts, or of another job: its exit status and result."""
        process = self.start_round(job or self.job(*(self.step("run_command", shell=script) for script in scripts)))
        stdout, stderr = process.communicate(timeout=120)
        for line in stderr.splitlines():
            json.loads(line)
        return process.returncode, json.loads(stdout)

    def shell(self, script):
        return subprocess.run(self.enter("sh", "-c", script), stdout=subprocess.PIPE, timeout=120, text=True).stdout

    def test_rounds_share_the_workspace_and_nothing_else(self):
        self.assertEqual(self.round("echo one >log; setsid sleep 600 & exit 0")[0], 0)
        status, result = self.round("echo two >>log; exit 4")
        self.assertEqual((status, result["failure_code"], result["steps"][0]["exit_code"]), (1, "step_failed", 4))
        status, result = self.round("cat log", "cat /proc/[0-9]*/comm | grep -c sleep || true")
        self.assertEqual((status, [step["output"] for step in result["steps"]]), (0, ["one\ntwo\n", "0\n"]))
        self.assertIsNone(self.session.poll())

    def test_a_refused_round_leaves_the_session(self):
        status, result = self.round(surprise=1)
        self.assertEqual((status, result["failure_code"]), (2, "schema_validation"))
        self.assertEqual(self.round("true")[0], 0)

    def test_what_others_leave_behind_is_reaped(self):
        self.shell(f"{{ {pid1.ORPHANS} }} >/dev/null")
        self.assertEqual(self.shell(pid1.NO_ZOMBIES), "none\n")

    def test_a_killed_round_leaves_the_session(self):
        process = self.start_round(self.job(self.step("run_command", shell="touch begun; sleep 600")))
        sba.wait_for((self.workspace / "begun").exists, "the round to begin")
        # In here the first process cannot be killed, so this means the round's.
        self.shell("pkill -KILL -x sba")
        stdout, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, stdout), (-signal.SIGKILL, b""))
        self.assertEqual(self.shell(pid1.NO_ZOMBIES), "none\n")
        self.assertEqual(self.round("true")[0], 0)

    def test_waiting_takes_no_time(self):
        def awake():
            return self.status("voluntary_ctxt_switches"), self.status("nonvoluntary_ctxt_switches")
        sba.wait_for(self.sleeps, "the runner to sleep")
        before = awake()
        time.sleep(1)  # the longer, the sooner a runner that polls is found out; one that sleeps passes in any case
        self.assertEqual(awake(), before)

    def test_sigterm_ends_it_and_all_that_runs_in_it(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(signal=number.name):
                stubborn = subprocess.Popen(self.enter("sh", "-c", "trap '' TERM INT; echo ready; sleep 600 & wait; wait"), stdout=subprocess.PIPE)
                self.addCleanup(stubborn.communicate)
                self.assertEqual(stubborn.stdout.readline(), b"ready\n")
                os.kill(self.first, number)
                self.assertEqual(self.session.wait(timeout=60), status)
                self.assertNotEqual(stubborn.wait(timeout=60), 0)
                self.doCleanups()
                self.setUp()


if __name__ == "__main__":
    sba.main()
