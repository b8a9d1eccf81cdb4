# SPDX-License-Identifier: Apache-2.0
"""The runner as PID 1 of a container, with and without /proc, and as an ordinary process among others."""
import contextlib
import os
import pathlib
import signal
import subprocess
import unittest

import sba

# A process that starts orphans in sessions of their own: some end at once (zombies for whoever adopts them), one stays.
ORPHANS = "for i in 1 2 3 4 5 6 7 8; do (setsid true &) ; done; (setsid sleep 600 &)"
# Prints the states of all processes but of this shell and its children; in a PID namespace, of the job's alone.
NO_ZOMBIES = """
n=0
while grep -q '^State:.*zombie' /proc/[0-9]*/status 2>/dev/null; do
    n=$((n + 1)); [ $n -lt 200 ] || { echo zombies; exit 1; }; sleep 0.05
done
echo none"""

NAMESPACE = ["unshare", "--mount"] if sba.UID else ["unshare", "--user", "--map-current-user", "--mount"]


def has_namespaces():
    return subprocess.run([*NAMESPACE, "--pid", "--fork", "--mount-proc", "true"], stderr=subprocess.DEVNULL).returncode == 0


class ProcessCase(sba.SandboxCase):
    def left(self):
        """The processes that have the workspace as their working directory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/cwd").startswith(str(self.workspace)):
                    found.append(pid)
        return found

    def start_others(self):
        """Two processes of the same user, children of the test: one in the runner's own process group, one in another session."""
        others = [subprocess.Popen(["sleep", "600"], start_new_session=session, **sba.ordinary_user()) for session in (False, True)]
        for other in others:
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
        return others


@unittest.skipUnless(has_namespaces(), "no PID namespace is to be had here")
class AsPid1(ProcessCase):
    wrapper = [*NAMESPACE, "--pid", "--fork", "--mount-proc", *sba.AS_USER]

    def run_as_pid1(self, *steps, **fields):
        done = self.run_job(self.job(self.step("run_command", shell="echo $PPID"), *steps, **fields), wrapper=self.wrapper,
                            **sba.AS_ROOT)
        self.assertTrue(done.result, f"no result: exit status {done.exit}, {done.stdout + done.stderr}")
        return done

    def output(self, done, index):
        return done.result["steps"][index]["result"]["stdout"]

    def assert_gone(self):
        sba.wait_for(lambda: not self.left(), "the job's processes to end")

    def test_how_a_command_ended(self):
        for script, exit_status, field, value in (("exit 0", 0, "exit_code", 0), ("exit 7", 1, "exit_code", 7), ("kill -SEGV $$", 1, "signal", "SIGSEGV")):
            done = self.run_as_pid1(self.step("run_command", shell=script))
            self.assertEqual((done.exit, self.output(done, 0), done.result["steps"][1]["result"][field]), (exit_status, "1\n", value), done.result)

    def test_timeout_ends_all(self):
        done = self.run_as_pid1(self.step("run_command", shell=ORPHANS + "; trap '' TERM; sleep 600"), max_runtime_seconds=1)
        self.assertEqual((done.exit, done.result["status"]), (124, "timeout"), done.result)
        self.assert_gone()

    def test_adopted_zombies_are_reaped(self):
        done = self.run_as_pid1(self.step("run_command", shell=ORPHANS), self.step("run_command", shell=NO_ZOMBIES))
        self.assertEqual((done.exit, self.output(done, 2)), (0, "none\n"), done.result)
        self.assert_gone()

    def test_a_child_from_before_the_runner_is_reaped(self):
        """The image's own entrypoint may have started something and then become the runner."""
        self.wrapper = [*self.wrapper, "sh", "-c", 'sleep 600 & true & exec "$@"', "sh"]
        done = self.run_as_pid1(self.step("run_command", shell=NO_ZOMBIES))
        self.assertEqual((done.exit, self.output(done, 1)), (0, "none\n"), done.result)

    def test_sigterm_cancels(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(signal=number.name):
                begun = self.workspace / "begun"
                begun.unlink(missing_ok=True)
                job = self.job(self.step("run_command", shell=ORPHANS + "; echo said; touch begun; sleep 600"))
                process = self.start(job, wrapper=self.wrapper, **sba.AS_ROOT)
                sba.wait_for(begun.exists, "the command to begin")
                os.kill(self.child_of(process.pid), number)
                done = self.outcome_of(process)
                self.assertEqual((done.exit, done.result["failure_code"]), (status, "cancelled"), done.result)
                self.assertEqual(self.output(done, 0), "said\n")
                self.assert_gone()

    @staticmethod
    def child_of(pid):
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@unittest.skipIf(sba.IS_DEV, "AddressSanitizer wants /proc")
class AsPid1WithoutProc(AsPid1):
    """An image may lack /proc; nothing else changes."""
    wrapper = [*NAMESPACE, "--pid", "--fork", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *sba.AS_USER]

    test_adopted_zombies_are_reaped = None  # these two look into /proc
    test_a_child_from_before_the_runner_is_reaped = None


class AsPid1WithTheProcOfOthers(AsPid1):
    """/proc may be that of another PID namespace, where every number means another process."""
    wrapper = [*NAMESPACE, "--pid", "--fork", *sba.AS_USER]

    test_adopted_zombies_are_reaped = None
    test_a_child_from_before_the_runner_is_reaped = None


class AmongOthers(ProcessCase):
    def test_other_processes_of_the_user_live_on(self):
        job = self.job(self.step("run_command", shell=ORPHANS + "; trap '' TERM; sleep 600"), max_runtime_seconds=1)
        others = self.start_others()
        self.assertEqual(self.run_job(job).exit, 124)
        self.assertEqual([other.poll() for other in others], [None, None])

    def test_a_sibling_that_loses_its_parent_is_not_ours(self):
        """An orphan of the shell that starts the runner goes to that shell's parent, not to the runner."""
        script = 'sleep 600 >/dev/null 2>&1 & echo $! > "$0"; "$@"; exit $?'
        note = self.workspace / "sibling"
        done = self.run_job(self.job(self.step("run_command", shell=ORPHANS)), wrapper=["sh", "-c", script, str(note)])
        sibling = int(note.read_text())
        self.addCleanup(os.kill, sibling, signal.SIGKILL)
        self.assertEqual(done.exit, 0, done.result)
        self.assertIn("sleep", pathlib.Path(f"/proc/{sibling}/comm").read_text())


if __name__ == "__main__":
    sba.main()
