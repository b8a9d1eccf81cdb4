# SPDX-License-Identifier: Apache-2.0
"""The log on stderr: JSON lines, the live view on a terminal, and readers that are slow, gone or hostile."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
import unittest

import sba
from sba import SandboxCase


class JsonLogTest(SandboxCase):
    environment = {"SBA_CONFINE": "off"}  # else a job below /tmp has a line more: confinement.partial

    def test_every_line_is_an_event_of_this_job(self):
        outcome = self.run_steps(self.write_file("a", "x"), self.read_file("none"))
        log = [json.loads(line) for line in outcome.stderr.splitlines()]
        for line in log:
            self.assertEqual(list(line)[:6], ["ts", "level", "event", "job_id", "task_id", "version"])
            self.assertRegex(line["version"], r"^\d+\.\d+")
            self.assertEqual((line["job_id"], line["task_id"]), ("job-1", "task-1"))
            self.assertRegex(line["ts"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertIn(line["level"], ("info", "warning", "error"))
        events = [line["event"] for line in log]
        self.assertEqual(events, ["job.accepted", "step.started", "step.finished", "step.started", "step.finished",
                                  "job.finished"])

    def test_stdout_stays_empty_where_the_result_is_a_file(self):
        # A node takes the container's stdout for the job's answer.
        jobs = {"done": self.job(self.sh("echo said; echo said >&2")), "refused": b"{",
                "failed": self.job(self.sh("exit 1"))}
        for name, job in jobs.items():
            for form in ("json", "text", "auto"):
                outcome = self.run_job(job, "--log-format", form)
                self.assertEqual(outcome.stdout, b"", (name, form))
                self.assertNotEqual(outcome.stderr, b"", (name, form))

    def test_events_are_written_before_a_command_runs(self):
        # What is kept back for one write does not wait for an end.
        turn = self.fifo()
        process = self.start(self.job(self.write_file("a", "x"), self.step("run_command", argv=["true"]),
                                      self.step("run_command", argv=["cat", "turn"])))
        told = []
        while told.count("step.started") < 3:
            told.append(json.loads(process.stderr.readline())["event"])
        of_a_step = ["step.started", "step.finished"]
        self.assertEqual(told, ["job.accepted", *of_a_step, *of_a_step, "step.started"])
        def statuses():
            return [item["status"] for item in self.todo_items()]
        sba.wait_for(lambda: statuses() == ["done", "done", "in_progress"], "the todo list to follow")
        turn.write_text("go")
        self.assertEqual(self.outcome_of(process).exit, 0)

    def test_a_reader_that_never_reads_does_not_stop_the_job(self):
        ends = os.pipe()
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
        process = self.start(self.job(*[self.step("list_tree", path=".") for _ in range(200)]), stderr=ends[1])
        os.close(ends[1])
        self.assert_end(self.outcome_of(process), 0)
        left = os.read(ends[0], 1 << 20)
        os.close(ends[0])
        for line in left.splitlines():
            json.loads(line)

    PROXY = {"HTTP_PROXY": "http://user:correct-horse-battery@127.0.0.1:1"}

    def test_a_failed_step_has_the_end_of_its_output(self):
        def tail_of(script):
            (finished,) = self.run_steps(self.sh(script), env=self.PROXY).events("step.finished")
            return finished.get("output_tail")
        tail = tail_of("seq 100000; printf 'the cause ä' >&2; exit 3")
        self.assertTrue(tail.endswith("\n99999\n100000\nthe cause ä"), tail[-100:])
        self.assertIn(len(tail.encode()), range(4093, 4097))
        self.assertEqual(tail_of("echo $HTTP_PROXY; false"), "http://[redacted]@127.0.0.1:1\n")
        self.assertIsNone(tail_of("echo fine"))

    def test_output_comes_while_the_command_runs(self):
        turn = self.fifo()
        script = ("seq 3000; printf 'corr\\303'; read x < turn; printf '\\244, correct-'; sleep 0.3; "
                  "echo horse-battery; read x < turn")
        process = self.start(self.job(self.sh(script)), env=self.PROXY)

        def output(end):
            """The events of the output up to one that ends so, and their text."""
            told, text = [], ""
            while not text.endswith(end):
                line = json.loads(process.stderr.readline())
                if line["event"] == "step.output":
                    told.append(line)
                    text += line["output"]
            return told, text
        told, text = output("\n3000\ncorr")
        self.assertEqual((told[0]["level"], told[0]["step"], told[0]["id"]), ("info", 1, "step-1"))
        self.assertLessEqual(max(len(line["output"]) for line in told), 4096)
        turn.write_text("go\n")
        self.assertEqual(output("\n")[1], "ä, [redacted]\n")
        turn.write_text("go\n")
        self.assertEqual(self.outcome_of(process).exit, 0)

    def test_what_no_event_has_of_an_output_is_counted_at_its_end(self):
        turn = self.fifo()
        process = self.start(self.job(self.sh("seq 3000; read x < turn; seq 100; exit 3")))
        told, line = 0, {}
        while line.get("event") != "step.finished":
            line = json.loads(process.stderr.readline())
            if line["event"] == "step.output":
                if not told:
                    turn.write_text("go\n")
                told += len(line["output"]) + line.get("left_out_bytes", 0)
        self.assertEqual(self.outcome_of(process).exit, 1)
        whole = sum(len(f"{i}\n") for last in (3000, 100) for i in range(1, last + 1))
        self.assertEqual(told + line.get("output_left_out_bytes", 0), whole)

    def test_whoever_started_the_container_gets_a_line(self):
        # A mount point, as the kubelet makes it, is written in place; so is whatever stands there.
        line = self.put(self.root / "termination-log", "x" * 5000)
        def ended(job, **options):
            self.outcome = self.run_job(job, env={"SBA_TERMINATION_LOG": str(line)}, **options)
            return line.read_text()
        self.assertEqual(ended(self.job(self.sh("true"))), "success\n")
        self.assertRegex(ended(self.job(self.sh("exit 3"))),
                         "^failure: step_failed: step 1 .* ended with exit code 3\n$")
        self.assertRegex(ended({"job_id": "x\ny"}), "^failure: schema_validation: the job is not valid: [^\n]*\n$")
        long = ended({name * 200: 1 for name in "abcdefghijklmnopqrstuvwxyz"})
        self.assertEqual((len(long.encode()), long[-1]), (4096, "\n"))
        crashing = self.start(self.job(self.sh("touch begun; sleep 60")), env={"SBA_TERMINATION_LOG": str(line)})
        sba.wait_for((self.workspace / "begun").exists, "the command to begin")
        crashing.send_signal(signal.SIGSEGV)
        self.outcome_of(crashing)
        self.assertRegex(line.read_text(), "^failure: internal_error: ")
        line.unlink()
        line.mkdir()
        self.outcome = self.run_steps(self.sh("true"), env={"SBA_TERMINATION_LOG": str(line)})
        self.assertEqual((self.outcome.exit, len(self.outcome.events("termination_log.failed"))), (0, 1))

    def test_a_job_directory_that_commands_may_write_is_a_note_at_the_end(self):
        job = self.job(self.sh("true"), max_runtime_seconds=2**63)
        outcome = self.run_job(job, "--log-format", "text", env={"SBA_CONFINE": "auto"})
        gaps = [gap for gap in outcome.confinement.get("partial", []) if "change this job's result" in gap]
        if not gaps:
            self.skipTest("commands cannot be confined here")
        first, *_, note, last = outcome.stderr.decode().splitlines()
        self.assertEqual((first, note, last[:8]), ("job job-1: 1 step", gaps[0], "result: "))
        self.assertNotIn("warning: a command could", outcome.stderr.decode())

    def test_a_job_that_can_go_on_says_how(self):
        job = self.job(self.sh("[ -e 'it is there' ]"))
        first = self.assert_end(self.run_job(job, "--log-format", "text"), 1, code="step_failed")
        command = first.stderr.decode().split("\nto go on: ")[1].splitlines()[0]
        self.assertTrue(first.stderr.decode().splitlines()[-1].startswith("result: "), "the last line")
        self.assertTrue(command.startswith("cynode-sba --resume --job "), command)
        (self.workspace / "it is there").touch()
        again = self.start(job, wrapper=["sh", "-c", command.replace("cynode-sba", str(sba.BINARY), 1)])
        done = self.assert_end(self.outcome_of(again), 0)
        self.assertNotIn("to go on", done.stderr.decode())
        job = self.job(self.sh(f"echo x >>{self.job_directory}/journal.jsonl"))
        changed = self.run_job(job, "--log-format", "text")
        self.assert_end(changed, 1, code="internal_error")
        self.assertNotIn("to go on", changed.stderr.decode(), "a journal that a command changed is refused")

    def test_follow_tells_all(self):
        job = self.job(self.sh("seq 20000; printf 'no newline'"))
        outcome = self.run_job(job, "--follow", "--log-format", "json")
        told = "".join(line["output"] for line in outcome.events("step.output"))
        self.assertEqual(told, "".join(f"{i}\n" for i in range(1, 20001)) + "no newline")
        shown = self.run_job(job, "--follow").stderr.decode()
        self.assertIn("> step 1 of 1  run_command  seq 20000", shown)
        self.assertEqual(re.findall(r"(?<=\n    ).*(?=\n)", shown), [*(str(i) for i in range(1, 20001)), "no newline"])
        self.assertTrue(re.search(r"\n    no newline\nok step 1 of 1", shown), shown[-1000:])

    def test_follow_shows_it_as_it_comes_on_a_pipe_too(self):
        turn = self.fifo()
        script = r"printf 'a\033[31mred\033[2Jb\n 50%%\r100%%'; read x < turn; echo; echo end; exit 3"
        process = self.start(self.job(self.sh(script)), "--follow")
        shown = b""
        while not shown.endswith(b"    100%"):
            shown += os.read(process.stderr.fileno(), 1)
        turn.write_text("go\n")
        shown = (shown + self.outcome_of(process).stderr).decode()
        self.assertIn("    ared\\x1b[2Jb\n    100%\n    end\nFAILED step 1", shown)
        self.assertEqual(shown.count("    end\n"), 1, "what was shown is not shown again")

    @unittest.skipUnless(sba.UID, "only root can look")
    def test_streams_that_were_closed_are_no_files_of_ours(self):
        # Else what is meant for a stream would go to whichever file was opened first.
        closed = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-']
        process = self.start(self.job(self.sh("touch begun; until [ -e go ]; do sleep 0.05; done")), wrapper=closed)
        sba.wait_for((self.workspace / "begun").exists, "the command to begin")
        streams = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        (self.workspace / "go").touch()
        self.assertEqual(self.outcome_of(process).exit, 0)
        self.assertEqual(streams, ["/dev/null"] * 3)

    def test_a_reader_that_is_gone_does_not_stop_the_job(self):
        ends = os.pipe()
        os.close(ends[0])
        process = self.start(self.job(self.write_file("a", "x")), stderr=ends[1])
        os.close(ends[1])
        self.assertEqual(self.outcome_of(process).exit, 0)

    def test_what_was_dropped_is_counted_when_the_reader_is_back(self):
        ends = os.pipe()
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
        turn = self.fifo()
        steps = [*[self.step("list_tree", path=".") for _ in range(50)], self.sh("read x < turn"),
                 *[self.step("list_tree", path=".") for _ in range(5)]]
        process = self.start(self.job(*steps), stderr=ends[1])
        os.close(ends[1])
        with turn.open() as go:  # opens when the command reads: by then much was dropped
            first = os.read(ends[0], 1 << 20)
            go.write("go\n")
        with open(ends[0], "rb") as pipe:
            rest = pipe.read()
        self.outcome_of(process)
        events = [json.loads(line) for line in (first + rest).splitlines() if line]
        dropped = [event for event in events if event["event"] == "log.dropped"]
        self.assertEqual(len(dropped), 1)
        self.assertGreater(dropped[0]["lines"], 50)
        self.assertEqual(events[-1]["event"], "job.finished")


class TerminalTest(SandboxCase):
    environment = {"SBA_CONFINE": "off"}  # else a job below /tmp has a line more: confinement.partial

    def on_terminal(self, job, *more, env=None):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = self.start(job, *more, stderr=slave, env={"TERM": "xterm", "LANG": "C.UTF-8", **(env or {})})
        os.close(slave)
        shown = self.rest_of(master)
        process.communicate(timeout=60)
        return shown

    @staticmethod
    def rest_of(master):
        shown = b""
        try:
            while block := os.read(master, 1 << 16):
                shown += block
        except OSError:  # the other end is closed
            pass
        os.close(master)
        return shown.decode()

    def three(self):
        return self.job(self.sh("sleep 1; printf '\\033[2Jgone'"),
                        self.sh("echo \u001b[2J\u009b31m \u202e; exit 3"), self.step("list_tree", path="."))

    def test_a_line_for_each_step_and_a_summary(self):
        shown = self.on_terminal(self.three())
        self.assertTrue(any(line.startswith("✓") and "step 1 of 3  run_command" in line for line in self.lines(shown)))
        self.assertTrue(any(line.startswith("✗") and "step 2 of 3" in line for line in self.lines(shown)))
        self.assert_says(shown, "3 steps: 1 succeeded, 1 failed, 1 skipped", f"result: {self.result_path}")
        self.assertLess(shown.index("▸ step 2 of 3"), shown.index("✗"))
        self.assertNotRegex(shown, r"\x1b\[[0-9]*[A-K]|\r[^\n]")  # nothing is drawn over

    @staticmethod
    def plain(line):
        return re.sub(r"\x1b\[[0-9;]*[mK]|\r", "", line)

    def lines(self, shown):
        return [self.plain(line) for line in shown.split("\r\n")]

    def test_what_a_job_says_is_never_obeyed(self):
        shown = self.on_terminal(self.three())
        self.assert_lacks(shown, "\x1b[2J", "\u009b", "\u202e")
        self.assertIn("\\x1b[2J", shown)
        plain = self.run_job(self.three(), "--log-format", "text").stderr.decode()
        self.assertNotRegex(plain.replace("\n", ""), r"[\x00-\x1f\x7f]")
        self.assertEqual(len(re.findall(r"^\S+ step \d of 3  ", plain, re.MULTILINE)), 2)

    def test_colour_only_where_it_is_wanted(self):
        self.assertIn("\x1b[31m", self.on_terminal(self.three()))
        self.assertNotRegex(self.on_terminal(self.three(), env={"NO_COLOR": "1"}), r"\x1b\[[0-9;]*m")
        self.assertNotIn("\x1b", self.on_terminal(self.three(), env={"TERM": "dumb"}))


sba.main(__name__)
