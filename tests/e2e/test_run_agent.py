# SPDX-License-Identifier: Apache-2.0
"""The step run_agent, with agents that a script plays: tests/servers/acp_agent.py."""
import os
import pathlib
import signal
import time

import sba

AGENT = pathlib.Path(__file__).resolve().parent.parent / "servers" / "acp_agent.py"


class RunAgent(sba.SandboxCase):
    def agent(self, way, **more):
        return self.step("run_agent", argv=["python3", "-B", str(AGENT), way], **{"prompt": "Make it loud.", **more})

    def run_agent(self, way, seconds=60, **more):
        outcome = self.run_steps(self.agent(way, **more), max_runtime_seconds=seconds)
        return outcome, outcome.steps[0]

    def setUp(self):
        super().setUp()
        self.put("a.txt", "hello\n")


class ATurn(RunAgent):
    def test_what_the_agent_said_and_did_is_in_the_result(self):
        outcome, step = self.run_agent("edits", model="big")
        self.assert_end(outcome, 0)
        self.assertEqual(self.text("a.txt"), "HELLO\n")
        result = step["result"]
        self.assertEqual((result["stop_reason"], result["answer"], result["tool_calls"]),
                         ("end_turn", "Done: Make it loud.", 1))
        self.assertEqual(step["output"], "(thinks) I look at it.\n[edit] Edit a.txt\nEdit a.txt: allowed\n"
                                         "[edit] Edit a.txt: completed\nDone: Make it loud.")
        report = result["report"]
        self.assertEqual((report["prompt_tokens"], report["completion_tokens"], report["cost_usd"]), (120, 30, 0.25))
        claimed = outcome.result["inference"]
        self.assertEqual((claimed["source"], claimed["model"], claimed["cost_usd"]), ("worker", "big", 0.25))
        self.assertEqual((outcome.answer, outcome.result["inference_used"]), ("Done: Make it loud.", False))
        self.assertIn(("change a.txt", "done"), [(item["title"], item["status"]) for item in self.todo_items()])

    def test_a_permission_that_the_policy_denies(self):
        for permissions in ({"edit": "deny"}, {"default": "deny"}):
            outcome, step = self.run_agent("edits", permissions=permissions)
            self.assert_end(outcome, 0)
            self.assertEqual(self.text("a.txt"), "hello\n")
            self.assertIn("Edit a.txt: denied", step["output"])

    def test_the_prompt_is_the_jobs_context_unless_the_step_has_one(self):
        job = self.job(self.step("run_agent", argv=["python3", "-B", str(AGENT), "edits"]))
        job["context"] = {"requirements": ["a.txt shouts"]}
        outcome = self.assert_end(self.run_job(job), 0)
        self.assertIn("a.txt shouts", outcome.steps[0]["result"]["answer"])

    def test_files_outside_the_workspace_and_unknown_methods_are_refused(self):
        outcome, step = self.run_agent("outside")
        self.assert_end(outcome, 0)
        self.assertEqual(step["output"],
                         "fs/read_text_file: -32603\nfs/write_text_file: -32603\nfs/read_text_file: -32602\n"
                                         "no/such: -32601\n")
        self.assertFalse((self.workspace.parent / "out").exists())

    def test_commands_of_an_agent_run_as_steps_do(self):
        outcome, step = self.run_agent("commands")
        self.assert_end(outcome, 0)
        self.assertRegex(step["output"], r"\A3: hello\ncannot run nowhere: .*\n0: \d+\n\Z")
        pid = int(step["output"].split()[-1])
        self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_a_model_that_is_not_allowed_or_not_offered(self):
        outcome, step = self.run_agent("edits", model="small")
        self.assert_end(outcome, 1, "step_failed")
        self.assertIn('offers no model "small"; it offers big', step["error"])
        job = self.job(self.agent("edits", model="big"))
        job["inference"] = {"allowed_models": ["other"]}
        outcome = self.run_job(job)
        self.assertIn("not among the job's allowed_models", outcome.message)


class Ends(RunAgent):
    def test_an_agent_that_refuses_fails_the_step(self):
        outcome, step = self.run_agent("refuses")
        self.assert_end(outcome, 1, "step_failed")
        self.assertEqual((step["error_code"], step["result"]["stop_reason"]), ("agent_gave_up", "refusal"))

    def test_a_program_that_ends_before_its_turn(self):
        outcome, step = self.run_agent("leaves")
        self.assert_end(outcome, 1, "step_failed")
        self.assertIn("ended with exit code 3", step["error"])
        self.assertEqual(step["result"]["stderr"], "no key\n")

    def test_an_agent_is_told_to_stop_before_its_time_is_up(self):
        outcome, step = self.run_agent("hangs", timeout_seconds=4)
        self.assert_end(outcome, 124, "timeout")
        ended = step["status"], step["result"]["stop_reason"], step["output"]
        self.assertEqual(ended, ("timeout", "cancelled", "I wait. I stop."))

    def test_one_that_does_not_hear_is_ended_in_time_with_what_it_said(self):
        for seconds, more in ((60, {"timeout_seconds": 2}), (60, {"idle_timeout_seconds": 2}), (3, {})):
            outcome, step = self.run_agent("deaf", seconds, **more)
            self.assertEqual((step["status"], step["output"]), ("timeout", "I hear nothing."), outcome.result)

    def test_what_it_leaves_running_is_ended_with_the_job(self):
        outcome, step = self.run_agent("forks")
        self.assert_end(outcome, 0)
        self.assertEqual(step["output"], "I left one.")
        self.assert_nothing_lives()

    def assert_nothing_lives(self):
        def living():
            return [pid for pid in os.listdir("/proc")
                    if pid.isdigit() and b"acp_agent.py\0forks" in self.command_line(pid)]
        sba.wait_for(lambda: not living(), "the end of what the agent left")

    @staticmethod
    def command_line(pid):
        try:
            return pathlib.Path("/proc", pid, "cmdline").read_bytes()
        except OSError:
            return b""


class Resumed(RunAgent):
    def test_an_agent_that_was_interrupted_goes_on_with_its_session(self):
        job = self.job(self.agent("loads"))
        process = self.start(job)
        sba.wait_for((self.workspace / "begun").exists, "the first turn")
        process.kill()
        process.communicate()
        outcome = self.assert_end(self.run_job(job, "--resume"), 0)
        step = outcome.steps[0]
        self.assertEqual(step["output"], "session/load s-1: You were interrupted while you did this; "
                                         "look at what is there, and go on.\n\nMake it loud.")

    def test_an_agent_killed_while_its_command_runs_and_a_deadline_meanwhile(self):
        outcome, step = self.run_agent("suicide")
        self.assert_end(outcome, 1, "step_failed")
        self.assertIn("was ended by SIGKILL", step["error"])
        outcome, step = self.run_agent("sleeps", 3)
        self.assertEqual((outcome.code, step["status"]), ("timeout", "timeout"), outcome.result)


class Cancelled(RunAgent):
    def test_while_a_command_of_the_agent_runs(self):
        begun = (self.workspace / "begun").exists
        outcome = self.run_and_signal(self.job(self.agent("sleeps")), signal.SIGTERM, begun, "the agent's command")
        self.assert_end(outcome, 143, "cancelled")
        self.assertEqual(outcome.steps[0]["error_code"], "cancelled")


class Gateway(RunAgent):
    def test_the_gateway_is_passed_on_only_where_the_operator_says_so(self):
        url = "http://127.0.0.1:9/mcp"
        for more, seen in (({}, "[]"), ({"SBA_WORKER_GATEWAY": "1"}, "http gateway " + url)):
            outcome = self.run_steps(self.agent("servers"),
                                     env={"SBA_MCP_GATEWAY_URL": url, "SBA_MCP_TOKEN": "a-token-of-the-job", **more})
            self.assert_end(outcome, 0)
            self.assertIn(seen, outcome.steps[0]["output"])
            self.assertNotIn("a-token-of-the-job", str(outcome.result))

    def test_a_secret_that_comes_in_pieces_where_the_output_is_cut(self):
        outcome = self.run_job(self.job(self.agent("pieces")), env={"SBA_MCP_TOKEN": "a-token-of-the-job"})
        self.assert_end(outcome, 0)
        self.assertNotIn("a-token", str(outcome.result))


class Hostile(RunAgent):
    def test_what_is_no_message_is_said_and_passed_over(self):
        outcome, step = self.run_agent("garbage")
        self.assert_end(outcome, 0)
        self.assertIn("not understood: ", step["output"])
        self.assertTrue(step["output"].endswith("Still here."), step["output"])

    def test_floods_and_endless_lines_within_bounds(self):
        for way, seconds, codes in (("floods", 3, ("timeout", "step_failed")), ("one_line", 300, ("step_failed",)),
                                    ("silent", 3, ("timeout",))):
            began = time.monotonic()
            outcome, step = self.run_agent(way, timeout_seconds=seconds)
            self.assertIn(step["error_code"], codes, step)
            self.assertLess(time.monotonic() - began, 60)
            self.assertLess(outcome.result["resource_usage"]["max_rss_bytes"], 512 << 20)


sba.main(__name__)
