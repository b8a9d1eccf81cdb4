# SPDX-License-Identifier: Apache-2.0
"""Signals to the runner, and what becomes of its commands when it dies."""
import os
import pty
import signal

import sba
from process_case import ProcessCase

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
        """After another signal, too: it is what a container's runtime sends."""
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
        done = self.outcome_of(process)
        self.assert_end(done, 0)
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
            os.close(os.open(os.ttyname(0), os.O_RDWR))  # the first that a session opens becomes its own

        master, slave = pty.openpty()
        self.give(os.ttyname(slave))
        job = self.job(self.sh("setsid sleep 600 & touch begun; sleep 600"))
        process = self.start(job, stdin=slave, stdout=slave, stderr=slave, preexec_fn=on_terminal)
        os.close(slave)
        sba.wait_for((self.workspace / "begun").exists, "the command to begin")
        os.close(master)
        self.assert_end(self.outcome_of(process), 129, "cancelled")
        self.assertEqual(self.left(), [])


class Death(ProcessCase):
    def test_a_command_dies_with_the_runner(self):
        self.run_and_kill(self.job(self.sh("touch killed; exec sleep 600")))
        sba.wait_for(lambda: not self.left(), "the command to end")


if __name__ == "__main__":
    sba.main()
