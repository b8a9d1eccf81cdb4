# SPDX-License-Identifier: Apache-2.0
"""Direct jobs from outside: what ends a job, with which status, code and exit, and what is reported of its steps."""
import base64
import os
import pathlib
import signal
import unittest

import sba
from sba import SandboxCase

shell = SandboxCase.sh


def catches(pid, number):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("SigCgt:")[1].split()[0], 16) >> (number - 1) & 1


class EndTest(SandboxCase):
    def check_end(self, outcome, status, code, exit_status, steps):
        self.assertEqual((outcome.status, outcome.code, outcome.exit), (status, code, exit_status), outcome.message)
        self.assertEqual(outcome.statuses, steps)
        self.assertEqual(outcome.message is None, code is None)
        self.assertEqual(outcome.log[-1]["event"], "job.finished")

    def test_a_job_without_steps_succeeds(self):
        self.check_end(self.run_steps(), "success", None, 0, [])

    def test_a_failing_step_ends_the_job_and_the_rest_is_skipped(self):
        outcome = self.run_steps(shell("echo fine"), shell("echo partly; echo wrong >&2; exit 7"), shell("touch never"),
                                 shell("true"))
        self.check_end(outcome, "failure", "step_failed", 1, ["success", "failure", "skipped", "skipped"])
        failed = outcome.steps[1]
        self.assertEqual((failed["exit_code"], failed["error_code"]), (7, "step_failed"))
        self.assertEqual(failed["result"]["stdout"], "partly\n")
        self.assertIn("partly\n", failed["output"])
        self.assertIn("step-2", outcome.message)
        self.assertFalse((self.workspace / "never").exists())

    def test_the_jobs_deadline(self):
        outcome = self.run_steps(shell("echo before; sleep 60"), shell("true"), max_runtime_seconds=1)
        self.check_end(outcome, "timeout", "timeout", 124, ["timeout", "skipped"])
        self.assertEqual(outcome.steps[0]["result"]["stdout"], "before\n")

    def test_the_deadline_is_one_for_all_steps(self):
        slow = sba.slowness()
        outcome = self.run_steps(*[shell("sleep 0.4")] * 20, max_runtime_seconds=1)
        self.assertEqual((outcome.status, outcome.exit), ("timeout", 124))
        self.assert_in_time(outcome, 1, slow)

    def test_sigterm_and_sigint_cancel(self):
        job = self.job(shell("echo before; touch begun; sleep 60"), shell("true"))
        for number, exit_status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            outcome = self.run_and_signal(job, number, (self.workspace / "begun").exists, "the command to begin")
            self.check_end(outcome, "failure", "cancelled", exit_status, ["failure", "skipped"])
            self.assertEqual(outcome.steps[0]["result"]["stdout"], "before\n")
            self.assertEqual(outcome.steps[0]["error_code"], "cancelled")
            (self.workspace / "begun").unlink()

    def test_sigterm_while_the_job_is_read(self):
        process = self.start(self.job(), "--job", "-", stdin=-1)
        sba.wait_for(lambda: catches(process.pid, signal.SIGTERM), "the runner's own signal handlers")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)
        self.assertEqual(self.outcome_of(process).code, "cancelled")

    def test_output_past_the_jobs_bound(self):
        outcome = self.run_steps(shell("yes"), shell("true"), max_output_bytes=5000)
        self.check_end(outcome, "failure", "constraint_violation", 1, ["failure", "skipped"])
        self.assertIn("(5000); raise that, print less, or give the step a smaller max_output_bytes: ", outcome.message)
        result = outcome.steps[0]["result"]
        self.assertEqual((len(result["stdout"]), result["stdout_truncated"]), (5000, True))
        (cut,) = outcome.events("step.output_truncated")
        self.assertEqual((cut["kept_bytes"], cut["limit_bytes"]), (5000, 5000))
        self.assertIn("the output was cut to 5000 bytes (limit: 5000)", cut["error"])
        self.put("long", "x" * 100)
        self.put("other", "x")
        limited = self.run_steps(self.step("list_tree", max_entries=1),
                                 self.step("search_files", pattern="x", max_matches=1))
        self.assertEqual([event["step"] for event in limited.events("step.output_truncated")], [1, 2], limited.message)
        (cut,) = self.run_steps(self.read_file("long", max_bytes=10)).events("step.output_truncated")
        self.assertIn("the output was cut to 10 bytes of 100 (limit: 10)", cut["error"])

    def test_a_command_that_falls_silent(self):
        silent = shell("echo begun; sleep 600", idle_timeout_seconds=1)
        outcome = self.run_steps(silent, shell("true"), max_runtime_seconds=300)
        self.check_end(outcome, "failure", "step_failed", 1, ["timeout", "skipped"])
        step = outcome.steps[0]
        self.assertEqual((step["error_code"], step["output"]), ("idle_timeout", "begun\n"))
        self.assertIn("printed nothing for 1 s and was ended", step["error"])
        self.assertLess(outcome.result["duration_ms"], 120000)

    def test_silence_that_cannot_be_told_from_a_hang(self):
        deaf = "trap '' TERM; echo begun; while :; do sleep 1; done"  # it is killed after its grace
        for script in ("exec >&- 2>&-; sleep 600", "sleep 600 >out 2>&1", deaf):
            outcome = self.run_steps(shell(script, idle_timeout_seconds=1), max_runtime_seconds=300)
            step = outcome.steps[0]
            self.assertEqual((step["status"], step["error_code"]), ("timeout", "idle_timeout"), script)

    def test_a_command_that_speaks_now_and_then_is_not_silent(self):
        silence = 2.5 * sba.slowness()
        speaks = f"for i in $(seq {round(2.4 * silence)}); do sleep 0.5; echo $i; echo $i >&2; done"
        for script in (speaks, f"({speaks}) & wait"):  # the second: a child speaks
            self.assertEqual(self.run_steps(shell(script, idle_timeout_seconds=silence)).statuses, ["success"])
        refused = self.run_steps(shell("true", idle_timeout_seconds=0))
        self.assertIn("/idle_timeout_seconds: expected a number above 0, got the number 0", refused.message)

    def test_a_working_dir_that_is_closed(self):
        (self.root / "closed").mkdir(0o000)
        outcome = self.run_steps(self.run_command("ls", working_dir=str(self.root / "closed")))
        self.assertEqual(outcome.steps[0]["error_code"], "permission_denied")
        closed = f"the working directory {os.path.realpath(self.root)}/closed"
        self.assertIn(f"{closed} cannot be entered: Permission denied", outcome.message)

    @unittest.skipUnless(sba.UID, "wants root")
    def test_a_workspace_that_cannot_be_used(self):
        # As rootless podman gives it without --userns=keep-id. Nothing is run, nor asked.
        agents = {"execution_mode": "agent_inference", "inference": {"allowed_models": ["m"]}}
        for owner, mode, what in ((0, 0o700, "entered"), (sba.UID, 0o300, "listed")):
            os.chown(self.workspace, owner, owner)
            self.workspace.chmod(mode)
            for job in (self.job(shell("touch never"), self.write_file("a", "x")), self.job(), self.job(**agents)):
                outcome = self.run_job(job, env={"OLLAMA_BASE_URL": "http://127.0.0.1:9"})
                self.assert_end(outcome, 2, "environment_invalid")
                told = f"the workspace .* cannot be {what}: Permission denied; .*--userns=keep-id"
                self.assertRegex(outcome.message, told)
                self.assertEqual(outcome.events("model.retry"), [])
                self.assertEqual(set(outcome.statuses), {"skipped"} if job["steps"] else set())

    @unittest.skipUnless(sba.UID, "wants root")
    def test_a_workspace_that_cannot_be_written_is_a_warning(self):
        self.put("a", "x")
        os.chown(self.workspace, 0, 0)
        outcome = self.assert_end(self.run_steps(shell("cat a")), 0)
        (warning,) = outcome.events("workspace.not_writable")
        self.assertRegex(warning["error"], f"user {sba.UID} cannot write .*--userns=keep-id")
        self.give(self.workspace)
        self.assertEqual(self.run_steps(shell("cat a")).events("workspace.not_writable"), [])

    def test_a_missing_workspace(self):
        outcome = self.run_job(self.job(shell("true")), "--workspace", str(self.root / "none"))
        self.check_end(outcome, "failure", "environment_invalid", 2, ["skipped"])
        self.assertIn("none", outcome.message)

    def check_refused(self, outcome, code="schema_validation"):
        self.assertEqual((outcome.exit, outcome.code, outcome.status), (2, code, "failure"))
        self.assertEqual((outcome.steps, outcome.result["artifacts"]), ([], []))
        self.assertEqual((outcome.events("job.accepted"), len(outcome.events("job.refused"))), ([], 1))

    def test_an_invalid_job_keeps_its_ids(self):
        outcome = self.run_steps(self.step("no_such_step"), surprise=1)
        self.check_refused(outcome)
        self.assertEqual((outcome.result["job_id"], outcome.result["task_id"]), ("job-1", "task-1"))
        errors = outcome.events("job.refused")[0]["errors"]
        self.assertTrue(any("/surprise" in error for error in errors))
        self.assertTrue(any("/steps/0/type" in error for error in errors))

    def test_ids_from_the_environment_where_the_job_has_none(self):
        outcome = self.run_job(b"{", env={"CYNODE_JOB_ID": "J", "CYNODE_TASK_ID": "T"})
        self.check_refused(outcome)
        self.assertEqual((outcome.result["job_id"], outcome.result["task_id"]), ("J", "T"))
        self.check_refused(self.run_job(b"\xff\x00"))
        self.assertEqual(self.run_job(b"").result["job_id"], "")

    def test_a_job_that_cannot_be_read(self):
        outcome = self.run_job(self.job(), "--job", str(self.root / "none"))
        self.check_refused(outcome, "environment_invalid")
        self.assertIn("none", outcome.message)
        self.check_refused(self.run_job(self.job(), "--job", str(self.job_directory)), "environment_invalid")

    def test_a_job_that_is_too_large(self):
        path = self.job_directory / "large"
        path.write_bytes(b" ")
        sba.os.truncate(path, (64 << 20) + 1)
        path.chmod(0o644)
        outcome = self.run_job(self.job(), "--job", str(path))
        self.check_refused(outcome)
        self.assertTrue(outcome.message.startswith("cannot read the job: "), "it was read whole")

    def test_many_steps_share_one_line_of_the_log_and_one_write_of_the_journal(self):
        job = self.job(self.step("run_command", argv=["false"]), *[self.step("list_tree", path=".")] * 3000)
        done = self.run_job(job)
        self.assertEqual(done.statuses, ["failure"] + ["skipped"] * 3000)
        items = [(item["id"], item["status"]) for item in done.result["todo"]["items"]]
        self.assertEqual(items[1:], [(str(i), "dropped") for i in range(2, 3002)])
        events = [line["event"] for line in done.log]
        self.assertEqual((events.count("steps.skipped"), events.count("todo.changed")), (1, 0))
        again = self.run_job(job, "--resume")
        self.assertEqual((again.exit, sba.timeless(again.steps)), (1, sba.timeless(done.steps)))


FIELDS = ["exit_code", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "duration_ms", "cpu_time_ms",
          "max_rss_bytes"]


class Commands(sba.SandboxCase):
    def run_step(self, **arguments):
        done = self.run_steps(self.step("run_command", **arguments))
        return done, done.steps[0]

    def test_the_ways_to_name_a_command(self):
        args = ["%s-%s", "a b", "$c"]
        for arguments in ({"command": "printf", "args": args}, {"argv": ["printf", *args]},
                          {"shell": "printf '%s-%s' 'a b' '$c'"}):
            done, entry = self.run_step(**arguments)
            printed = entry["result"]["stdout"], entry["output"]
            self.assertEqual((done.exit, *printed), (0, "a b-$c", "a b-$c"), done.result)
            self.assertEqual(list(entry["result"]), FIELDS)

    def test_a_character_of_stdout_that_stderr_interrupts(self):
        script = ("printf 'a\\342'; sleep 0.1; echo warning >&2; sleep 0.1; printf '\\230'; sleep 0.1; echo more >&2; "
                  "printf '\\272b\\n\\342'")
        _, entry = self.run_step(shell=script)
        self.assertEqual(entry["result"]["stdout"], "a\u263ab\n\ufffd")
        self.assertEqual(entry["output"].count("\ufffd"), 1, entry["output"])  # only the half one at the end
        self.assert_says(entry["output"], "warning\n", "more\n", "\u263ab\n")

    def test_the_plain_text_of_bytes_that_are_not_utf8(self):
        self.put("f", b"\xff" * 8)
        self.put("g", "\u263a\u263a".encode())
        steps = self.run_steps(self.read_file("f", max_bytes=3), self.read_file("f"),
                               self.read_file("g", offset_bytes=1, max_bytes=3)).steps
        self.assertEqual([step["output"] for step in steps], [
            "3 of 8 bytes, which are not UTF-8 by themselves\n", "8 bytes that are not UTF-8\n",
            "3 of 6 bytes, which are not UTF-8 by themselves\n"])

    def test_base64_with_line_ends(self):
        # As base64(1), Python's encodebytes and GitHub's API write it.
        content = bytes(range(256))
        for ends in (b"\n", b"\r\n"):
            text = base64.encodebytes(content).replace(b"\n", ends).decode()
            self.assert_end(self.run_steps(self.write_file("f", text, encoding="base64")), 0)
            self.assertEqual((self.workspace / "f").read_bytes(), content)
        self.assert_end(self.run_steps(self.write_file("f", "AAAA AAAA", encoding="base64")), 2, "schema_validation")

    def test_a_script_that_is_too_long_for_an_argument(self):
        comment = "# " + "x" * 1000 + "\n"
        script = comment * 140 + "cat; test -e /proc/$$/fd/3 || echo closed; printf '%s\\n' \"$#\"; exit 7"
        done, entry = self.run_step(shell=script, stdin="input\n")
        self.assertEqual((entry["exit_code"], entry["output"]), (7, "input\nclosed\n0\n"), done.message)
        for size in (131071, 131072):  # the kernel's limit, with the NUL at the end
            done, entry = self.run_step(shell="echo $0 #".ljust(size, "x"))
            self.assertEqual((done.exit, entry["output"]), (0, "/bin/sh\n" if size < 131072 else "/proc/self/fd/3\n"))

    @unittest.skipUnless(sba.MAY_MOUNT, "nothing can be mounted here")
    @unittest.skipIf(sba.IS_DEV, "AddressSanitizer wants /proc")
    def test_a_long_script_without_proc(self):
        job = self.job(shell("echo $0 #".ljust(200000, "x")))
        outcome = self.run_job(job, **self.in_namespace("mount -t tmpfs none /proc"))
        path = outcome.steps[0]["output"].strip()
        self.assertEqual((outcome.exit, path.split("/")[-1]), (0, "script"), outcome.message)
        self.assertFalse(os.path.exists(os.path.dirname(path)))

    def test_a_signal_is_no_exit_code(self):
        done, entry = self.run_step(shell="kill -SEGV $$")
        self.assertEqual((done.exit, entry["result"]["signal"]), (1, "SIGSEGV"))
        self.assertNotIn("exit_code", entry)
        self.assertNotIn("exit_code", entry["result"])

    def test_working_dir_and_its_alias(self):
        self.put("a/b/file")
        for name in ("working_dir", "cwd"):
            done, entry = self.run_step(command="ls", **{name: "a/b"})
            self.assertEqual(entry["result"]["stdout"], "file\n", done.result)
        os.symlink("/usr", self.workspace / "out")
        _, entry = self.run_step(argv=["/bin/pwd", "-P"], working_dir="out/bin")
        self.assertEqual(entry["result"]["stdout"], os.path.realpath("/usr/bin") + "\n")

    def test_a_command_is_found_by_its_own_path(self):
        self.put("tools/greet", "#!/bin/sh\necho hello\n", 0o755)
        job = self.job(self.run_command("greet", env={"PATH": f"{self.workspace}/tools:/bin"}))
        self.assertEqual(self.run_job(job).steps[0]["result"]["stdout"], "hello\n")

    def test_a_name_that_no_command_can_have(self):
        # A script in the place of a name, for example. The message does not repeat it.
        done, entry = self.run_step(command="x" * 100000)
        self.assertEqual((entry["status"], entry["error_code"]), ("failure", "name_too_long"), done.message)
        self.assertLess(len(entry["error"]), 200)

    def test_stdin(self):
        self.assertEqual(self.run_step(command="cat", stdin="a\0b\u00e9")[1]["result"]["stdout"], "a\0b\u00e9")
        self.assertEqual(self.run_step(command="cat")[1]["result"]["stdout"], "")


sba.main(__name__)
