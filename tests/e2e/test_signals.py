# SPDX-License-Identifier: Apache-2.0
"""Signals to the runner, and what becomes of its commands when it dies."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import termios
import unittest

import sba
from process_case import PYTHON, WITH_PROC, ProcessCase, has_namespaces

# No cancels: what cannot be handled, crashes, what the runner ignores or has for itself, and what ends no process.
EXEMPT = {signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE,
          signal.SIGTRAP, signal.SIGSYS, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGALRM, signal.SIGCHLD, signal.SIGCONT,
          signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH}
FIRST_REAL_TIME = 35  # musl keeps 32 to 34 for itself, glibc 32 and 33
CANCELS = sorted(number for number in signal.valid_signals() - EXEMPT if not 32 <= number < FIRST_REAL_TIME)
SAMPLE = [signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGXCPU, signal.SIGPWR, FIRST_REAL_TIME,
          signal.SIGRTMAX]


class Cancels(ProcessCase):
    def run_until_begun(self, number):
        """Starts a job that leaves a process behind and waits in another, and sends it the signal once both run."""
        begun = self.workspace / f"begun-{number}"
        script = f"setsid sleep 600 & touch {begun.name}; sleep 600"
        return self.run_and_signal(self.job(self.sh(script)), number, begun.exists, "the command to begin")

    def test_whatever_would_end_a_process(self):
        for number in CANCELS if sba.LONG else SAMPLE:
            with self.subTest(signal=number):
                self.assert_end(self.run_until_begun(number), 128 + number, "cancelled")
                self.assertEqual(self.left(), [])

    def test_sigterm_says_the_exit_status(self):
        # After another signal, too: it is what a container's runtime sends.
        process = self.start(self.job(self.sh("touch begun; sleep 600")))
        sba.wait_for((self.workspace / "begun").exists, "the command to begin")
        for number in (signal.SIGSTOP, signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):
            process.send_signal(number)
        self.assert_end(self.outcome_of(process), 143, "cancelled")

    def test_one_that_was_ignored_at_the_start_is_none(self):
        def ignoring():
            sba.reset_signals()
            for number in (signal.SIGHUP, signal.SIGUSR1, FIRST_REAL_TIME):
                signal.signal(number, signal.SIG_IGN)

        turn = self.fifo()
        process = self.start(self.job(self.sh("grep SigIgn /proc/self/status; read line <turn")), preexec_fn=ignoring)
        with turn.open() as writer:
            for number in (signal.SIGHUP, signal.SIGUSR1, FIRST_REAL_TIME):
                process.send_signal(number)
            writer.write("go on\n")
        done = self.assert_end(self.outcome_of(process), 0)
        self.assertEqual(int(done.steps[0]["output"].split()[1], 16), 0, "a command ignores no signal")

    def test_one_that_was_blocked_at_the_start(self):
        def blocking():
            sba.reset_signals()
            signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())

        job, begun = self.job(self.sh("touch begun; sleep 600")), self.workspace / "begun"
        done = self.run_and_signal(job, signal.SIGTERM, begun.exists, "the command to begin", preexec_fn=blocking)
        self.assert_end(done, 143, "cancelled")

    def test_a_terminal_that_goes_away(self):
        def on_terminal():
            sba.reset_signals()
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the session's own terminal

        try:
            master, slave = pty.openpty()
        except OSError as problem:
            self.skipTest(f"no terminal is to be had here: {problem}")
        job = self.job(self.sh("setsid sleep 600 & touch begun; sleep 600"))
        process = self.start(job, stdin=slave, stdout=slave, stderr=slave, preexec_fn=on_terminal)
        os.close(slave)
        sba.wait_for((self.workspace / "begun").exists, "the command to begin")
        os.close(master)
        self.assert_end(self.outcome_of(process), 129, "cancelled")
        self.assertEqual(self.left(), [])


class DieWithParent(ProcessCase):
    # Starts the runner in a thread of a pool, waits for the test, ends the thread, then itself.
    PARENT = """
import subprocess, sys, threading
def start():
    global runner
    runner = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
thread = threading.Thread(target=start)
thread.start()
thread.join()
sys.stdin.readline()
"""

    def test_the_end_of_the_process_that_started_it_cancels(self):
        begun = self.workspace / "begun"
        job = self.job(self.sh("setsid sleep 600 & touch begun; sleep 600"))
        for how in (["--die-with-parent"], {"SBA_DIE_WITH_PARENT": "1"}):
            with self.subTest(how=how):
                more, env = (how, None) if isinstance(how, list) else ((), how)
                begun.unlink(missing_ok=True)
                parent = self.start(job, *more, wrapper=[PYTHON, "-c", self.PARENT], env=env, stdin=subprocess.PIPE)
                sba.wait_for(begun.exists, "the command to begin")
                parent.kill()
                # The runner has the other ends of the parent's pipes.
                done = self.outcome_of(parent)
                self.assertEqual(done.code, "cancelled", done.stderr)
                sba.wait_for(lambda: not self.left(), "the job's processes to end")

    def test_without_it_the_job_goes_on(self):
        turn = self.fifo()
        job = self.job(self.sh("touch begun; read line <turn; echo on"))
        parent = self.start(job, wrapper=[PYTHON, "-c", self.PARENT], stdin=subprocess.PIPE)
        with turn.open() as writer:
            parent.kill()
            writer.write("go on\n")
        done = self.outcome_of(parent)
        self.assertEqual((done.code, done.steps[0]["output"]), (None, "on\n"))

    def test_a_parent_that_is_gone_before_the_runner_looks(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        job = self.job(self.sh("env >variables"))
        done = self.assert_end(self.run_job(job, env={"SBA_DIE_WITH_PARENT": str(gone.pid)}), 143, "cancelled")
        self.assertEqual(len(done.events("parent.gone")), 1)
        self.assertFalse((self.workspace / "variables").exists())
        done = self.assert_end(self.run_job(job, "--resume", env={"SBA_DIE_WITH_PARENT": str(os.getpid())}), 0)
        self.assertNotIn("SBA_DIE_WITH_PARENT", self.text("variables"))  # it is the runner's parent
        done = self.run_job(job, env={"SBA_DIE_WITH_PARENT": "yes"})
        self.assertEqual((done.exit, b"process id" in done.stderr), (2, True), done.stderr)

    @unittest.skipUnless(has_namespaces(), "no PID namespace is to be had here")
    def test_a_parent_outside_the_namespace(self):
        done = self.run_job(self.job(self.sh("touch never")), "--die-with-parent", wrapper=WITH_PROC, **sba.AS_ROOT)
        self.assert_end(done, 2, "environment_invalid", "outside its PID namespace")
        self.assertFalse((self.workspace / "never").exists())


@unittest.skipUnless(all(map(os.path.exists, ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"))),
                     "/proc does not say which boot and namespace this is")
class Killed(ProcessCase):
    """What outlives a runner that was killed."""

    def kill_with(self, *leftovers, steps=(), **options):
        """Kills the runner of a job in a step that leaves these behind: shell commands, each for a process."""
        script = " ".join(f"({leftover}) >/dev/null 2>&1 </dev/null &" for leftover in leftovers)
        job = self.job(*steps, self.sh(f"test -e killed || {{ {script} touch killed; sleep 600; }}; echo on"))
        killed = self.workspace / "killed"

        def is_time():
            """The journal has the sessions of all commands."""
            return killed.exists() and self.journal_file.read_bytes().count(b'"step.session"') == len(job["steps"])

        done = self.run_and_signal(job, signal.SIGKILL, is_time, "the leftovers", **options)
        self.assertEqual(done.exit, -signal.SIGKILL)
        return job

    def commands_left(self):
        """The command lines of what is alive."""
        found = []
        for pid in self.left():
            with contextlib.suppress(OSError):
                found.append(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
        return sorted(found)

    @staticmethod
    def contents(directory):
        return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}

    def end_left(self):
        for pid in self.left():
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_left)

    def test_a_command_dies_with_it(self):
        self.run_and_kill(self.job(self.sh("touch killed; exec sleep 600")))
        sba.wait_for(lambda: not self.left(), "the command to end")

    # By its environment, by its session, and by neither: the last is not found.
    LEFTOVERS = "exec setsid sleep 601", "exec env -i sleep 602", "exec setsid env -i sleep 603"

    def test_the_next_run_ends_it(self):
        for arguments in ((), ("--resume",)):
            with self.subTest(arguments=arguments):
                job = self.kill_with(*self.LEFTOVERS)
                left = {"sleep 601", "sleep 602", "sleep 603"}
                sba.wait_for(lambda: left <= set(self.commands_left()), "the leftovers")
                done = self.assert_end(self.run_job(job, *arguments), 0)
                self.assertEqual(self.commands_left(), ["sleep 603"])
                self.assertGreaterEqual(done.events("leftovers.ended")[0]["count"], 2)
                self.end_left()
                (self.workspace / "killed").unlink()

    def test_sessions_of_another_boot_mean_others(self):
        job = self.kill_with(*self.LEFTOVERS)
        journal = self.journal_file.read_text()
        boot_id = self.journal()[0]["run"]["boot_id"]
        self.journal_file.write_text(journal.replace(boot_id, "00000000" + boot_id[8:]))
        sba.wait_for(lambda: "sleep 602" in self.commands_left(), "the leftovers")
        self.assert_end(self.run_job(job, "--resume"), 0)
        self.assertTrue({"sleep 602", "sleep 603"} <= set(self.commands_left()), self.commands_left())
        self.assertNotIn("sleep 601", self.commands_left())

    def test_a_run_that_ended_left_nothing(self):
        job = self.job(self.sh("setsid sleep 600 & echo on"))
        self.assertEqual(self.run_job(job).exit, 0)
        done = self.run_job(job)
        self.assertEqual((done.exit, done.events("leftovers.ended"), self.left()), (0, [], []))

    def kill_with_a_lock(self, *before):
        """Of a job whose command locks the journal. A descriptor that can only be read is enough."""
        self.put("hold.py", "import fcntl, sys, time\nopened = open(sys.argv[1])\nfcntl.flock(opened, fcntl.LOCK_SH)\n"
                            "open('held', 'w').close()\ntime.sleep(600)\n")
        job = self.kill_with(" ".join(["exec", *before, PYTHON, "hold.py", str(self.journal_file)]))
        sba.wait_for((self.workspace / "held").exists, "the lock to be taken")
        return job

    def test_one_that_holds_the_lock(self):
        self.assert_end(self.run_job(self.kill_with_a_lock(), "--resume"), 0)
        self.assertEqual(self.left(), [])

    def test_one_that_holds_the_lock_and_is_not_found(self):
        job = self.kill_with_a_lock("setsid", "env", "-i")
        before = self.result_path.read_bytes()
        done = self.run_job(job, "--resume")
        self.assertEqual((done.exit, done.result_bytes), (2, before))
        self.assertIn("though its runner is gone", done.events("job.locked")[0]["error"])

    def test_beside_a_living_runner_nothing_is_touched(self):
        # Its journal is locked. Of a copy the lock is free, but it names a runner that lives.
        turn = self.fifo()
        job = self.job(self.sh("setsid sleep 600 & read line <turn; kill -0 $! && echo alive"))
        first = self.start(job)
        with turn.open() as writer:
            copy = self.root / "copy"
            shutil.copytree(self.job_directory, copy)
            self.give(copy, *copy.iterdir())
            before = self.contents(copy)
            place = ["--job", copy / "job.json", "--result", copy / "result.json", "--workspace", self.workspace]
            for arguments in (self.arguments(), place):
                second = sba.run(*arguments, "--resume")
                self.assertEqual(second.returncode, 2, second.stderr)
                self.assertIn(b"another runner", second.stderr)
            self.assertEqual(self.contents(copy), before)
            writer.write("go on\n")
        done = self.outcome_of(first)
        self.assertEqual((done.exit, done.steps[0]["output"]), (0, "alive\n"))

    def test_processes_of_others_live_on(self):
        # Those of another run of the user, and one from which the next run descends.
        other = self.fresh()
        turn = other.fifo()
        beside = other.start(other.job(other.sh("setsid sleep 600 & read line <turn; kill -0 $! && echo alive")))
        with turn.open() as writer:
            job = self.kill_with("exec setsid sleep 601")
            word = next(line["run"]["word"] for line in self.journal() if line["event"] == "job")
            descends = ["env", f"CYNODE_RUN={word}", "sh", "-c", '"$@"; echo "still here" >&2', "sh"]
            done = self.run_job(job, wrapper=descends)
            self.assertIn(b"still here", done.stderr)
            self.assertEqual((done.code, self.left()), (None, []))
            writer.write("go on\n")
        self.assertEqual(other.outcome_of(beside).steps[0]["output"], "alive\n")

    def test_the_journal_names_who_runs(self):
        job = self.kill_with("exec setsid sleep 601", steps=[self.sh("echo $CYNODE_RUN", env={"CYNODE_RUN": "mine"})])
        self.assert_end(self.run_job(job, "--resume"), 0)
        runs = [line["run"] for line in self.journal() if line["event"] in ("job", "job.resumed")]
        self.assertEqual(len({run["word"] for run in runs}), 2)
        for run in runs:
            self.assertLessEqual({"word", "pid", "started", "boot_id", "pid_namespace"}, set(run))
        self.assertEqual(json.loads(self.result_path.read_text())["steps"][0]["output"], runs[0]["word"] + "\n")


sba.main(__name__)
