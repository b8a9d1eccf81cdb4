# SPDX-License-Identifier: Apache-2.0
"""Commands that ignore signals, hide, hold pipes or print without end. Afterwards nothing of the job is alive."""
import os
import pathlib
import unittest

import sba
from process_case import PYTHON, HostileCase

MIB = 1 << 20


class Ends(HostileCase):
    def test_sigterm_ignored(self):
        script = "trap '' TERM; echo said; while :; do sleep 1; done"
        done = self.run_hostile(self.sh(script, timeout_seconds=1))
        self.assertEqual((done.exit, self.first(done)["status"]), (124, "timeout"), done.result)
        self.assertEqual(self.first(done)["result"]["stdout"], "said\n")
        self.assertEqual(self.first(done)["result"]["signal"], "SIGKILL")

    def test_stopped_where_we_trace_it(self):
        # PTRACE_TRACEME makes the runner its tracer, which sees its stops; whether it may or not, it stops.
        script = "import ctypes, os, signal; ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGSTOP)"
        done = self.run_hostile(self.step("run_command", argv=[PYTHON, "-c", script]), max_runtime_seconds=2)
        self.assertEqual((done.exit, done.code, self.first(done)["status"]), (124, "timeout", "timeout"), done.result)

    def test_sigterm_is_a_chance_to_tidy_up(self):
        script = "trap 'echo tidied; exit 5' TERM; echo said; while :; do sleep 0.1; done"
        done = self.run_hostile(self.sh(script, timeout_seconds=1))
        self.assertEqual(self.first(done)["result"]["stdout"], "said\ntidied\n")
        self.assertEqual(self.first(done)["exit_code"], 5)

    def test_sigterm_reaches_a_child_of_a_command_that_ignores_it(self):
        child = "trap 'echo tidied; exit' TERM; sleep 600 & touch reached; wait"
        script = f"({child}) & trap '' TERM; while :; do wait; sleep 1; done"
        self.assertEqual(self.run_to_sigterm(self.sh(script)), "tidied\n")

    def test_much_that_is_said_at_the_very_end_is_kept(self):
        self.put("much", "x" * 60000)  # as much as a pipe holds
        script = "trap 'cat much; kill -KILL $$' TERM; sleep 600 & touch reached; while :; do wait; done"
        self.assertEqual(len(self.run_to_sigterm(self.sh(script))), 60000)

    def test_a_daemon_lives_until_the_job_ends_and_no_longer(self):
        count = f"grep -lz {self.mark} /proc/[0-9]*/environ 2>/dev/null | wc -l"
        self.assert_end(self.run_hostile(self.hostile("daemon"), self.sh(count)), 0)

    def test_a_daemon_ends_with_a_command_that_times_out(self):
        step = self.sh(f"{PYTHON} hostile.py daemon; sleep 600", timeout_seconds=1)
        self.assertEqual(self.run_hostile(step).exit, 124)

    def test_a_subreaper_of_its_own(self):
        self.assertEqual(self.run_hostile(self.hostile("own_subreaper"), max_runtime_seconds=2).exit, 124)
        self.assertTrue((self.workspace / "reached").exists())

    def test_a_stopped_command(self):
        done = self.run_hostile(self.hostile("stopped"), max_runtime_seconds=1)
        self.assertEqual((done.exit, self.first(done)["result"]["signal"]), (124, "SIGTERM"), done.result)

    def test_all_signals_blocked(self):
        self.assertEqual(self.run_hostile(self.hostile("blocked"), max_runtime_seconds=2).exit, 124)
        self.assertTrue((self.workspace / "reached").exists())

    def test_a_chain_whose_parents_end(self):
        self.assertEqual(self.run_hostile(self.hostile("chain", 1000), max_runtime_seconds=60).exit, 0)

    def test_a_deep_tree(self):
        self.run_to_sigterm(self.hostile("ladder", 300))

    def test_a_zombie_factory_leaves_none_while_commands_run(self):
        step = self.sh(f"{PYTHON} hostile.py zombies 500; touch made; while [ ! -e go ]; do sleep 0.05; done")
        process = self.start(self.job(step))
        sba.wait_for(lambda: (self.workspace / "made").exists() and self.zombies(process.pid) == 0,
                     "zombies to be reaped while a command runs")
        (self.workspace / "go").touch()
        self.assertEqual(self.outcome_of(process).exit, 0)

    def test_many_that_end_when_asked(self):
        self.assertEqual(self.run_to_sigterm(self.hostile("crowd", 100)), "told\n" * 100)


@unittest.skipUnless(sba.UID, "needs root: only another user's process cannot be ended")
class LeftByRoot(HostileCase):
    """An entrypoint of root's that starts something and then becomes the runner as an ordinary user."""

    def left_by_root(self, *steps, **fields):
        note = self.root / "left"
        wrapper = ["sh", "-c", 'sleep 600 >/dev/null 2>&1 & echo $! > "$0"; exec "$@"', str(note), *sba.AS_USER]
        done = self.run_job(self.job(*steps, **fields), wrapper=wrapper, **sba.AS_ROOT)
        left = int(note.read_text())
        self.addCleanup(os.kill, left, 9)
        self.assertEqual(pathlib.Path(f"/proc/{left}/comm").read_text(), "sleep\n")
        self.assertEqual([(line["count"], line["pid"]) for line in done.events("processes.left")], [(1, left)])
        self.assertEqual(self.marked(), [left])
        return done

    def test_is_not_waited_for_at_the_deadline(self):
        slow = sba.slowness()
        done = self.left_by_root(self.sh("sleep 600"), max_runtime_seconds=1)
        self.assertEqual(done.exit, 124, done.result)
        self.assert_in_time(done, 1, slow)

    def test_is_not_waited_for_at_the_end(self):
        # Nor does it keep what a command left from being ended.
        self.assert_end(self.left_by_root(self.hostile("daemon"), max_runtime_seconds=60), 0)


class Output(HostileCase):
    def test_a_daemon_that_holds_stdout_is_not_waited_for(self):
        done = self.assert_end(self.run_hostile(self.hostile("daemon_with_stdout")), 0)
        self.assertIn("said\n", self.first(done)["result"]["stdout"])
        self.assertLess(done.seconds, 30)  # the daemon would go on for ten minutes

    def test_two_gigabytes(self):
        # Past a step's own limit the command goes on, and neither memory nor the result grows.
        step = self.hostile("print_much", 2048 * MIB, max_output_bytes=1000)
        done = self.run_hostile(step, max_output_bytes=64 * MIB)
        entry = self.first(done)
        self.assertEqual(done.exit, 0, entry.get("error"))
        self.assertEqual((len(entry["result"]["stdout"]), entry["result"]["stdout_truncated"]), (1000, True))
        self.assertLessEqual(len(entry["output"].encode()), 1000)
        self.assertIn("bytes left out", entry["output"])
        self.assertTrue(entry["output"].endswith("0123456789abcde\n"), "the end of what was printed is shown")
        largest = done.result["resource_usage"]["max_rss_bytes"]
        self.assertLess(largest, (200 if sba.IS_DEV else 40) * MIB)

    def test_nuls_and_bytes_that_are_not_utf8(self):
        done = self.run_hostile(self.sh(r"printf 'a\000b\377\303\251\360\237\230'"))
        self.assertEqual(self.first(done)["result"]["stdout"], "a\0b\ufffd\u00e9\ufffd")

    def test_repair_does_not_grow_past_the_bound(self):
        done = self.run_hostile(self.sh(r"head -c 30000 /dev/zero | tr '\000' '\377'"), max_output_bytes=40000)
        entry = self.first(done)
        self.assertEqual(done.code, "constraint_violation", entry.get("error"))
        self.assertEqual(entry["result"]["stdout"], "\ufffd" * 13333)

    def test_stdin_that_is_never_read(self):
        self.assert_end(self.run_hostile(self.run_command("true", stdin="x" * 4 * MIB)), 0)

    def test_stdin_and_stdout_larger_than_the_pipes(self):
        text = "0123456789abcdef" * (MIB // 4)
        done = self.run_hostile(self.run_command("cat", stdin=text), max_output_bytes=16 * MIB)
        self.assertEqual(self.first(done)["result"]["stdout"], text)

    def test_outputs_closed_early(self):
        done = self.run_hostile(self.hostile("deaf", 1))
        self.assertEqual((done.exit, self.first(done)["result"]["stdout"]), (0, "said\n"), done.result)
        self.assertGreaterEqual(self.first(done)["result"]["duration_ms"], 1000)

    def test_a_command_that_reads_its_own_stdout(self):
        self.assert_end(self.run_hostile(self.hostile("thief")), 0)


sba.main(__name__)
