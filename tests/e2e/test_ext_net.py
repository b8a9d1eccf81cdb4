# SPDX-License-Identifier: Apache-2.0
"""`ext_net_required`: jobs that fail for want of the outside, or not. What each tool says is in network_spec.lua."""
import sba
from agent_case import AgentCase, call, finish, runs

NOWHERE = "no-such-host.invalid"
FETCH = sba.SandboxCase.sh(f"curl -sS https://{NOWHERE}/x")


class Jobs(sba.SandboxCase):
    def assert_ends(self, outcome, code, *words):
        self.assertEqual(outcome.code, code, outcome.result)
        self.assert_says(outcome.message, *words)

    def test_what_was_wanted_is_said_in_result_and_log(self):
        outcome = self.run_steps(self.run_command("true"), FETCH, self.run_command("true"))
        self.assert_ends(outcome, "ext_net_required", "step 2 (step-2, run_command): the command `curl", "exit code 6",
                         f"it wanted the host {NOWHERE}, and the job's ext_net_allowed is false: "
                         "curl: (6) Could not resolve host")
        self.assertEqual((outcome.exit, outcome.status), (1, "failure"))
        self.assertEqual(outcome.statuses, ["success", "failure", "skipped"])
        self.assertEqual(outcome.log[-1]["failure_code"], "ext_net_required")

    def test_a_job_that_may_have_the_outside_has_a_failed_step(self):
        outcome = self.run_steps(FETCH, ext_net_allowed=True)
        self.assert_ends(outcome, "step_failed", "exit code 6")

    def test_through_make_and_scripts(self):
        self.put("Makefile", f"data:\n\tcurl -sSo data https://{NOWHERE}/x\n")
        self.put("setup", f"#!/bin/sh\nset -e\necho fetching\ngit clone https://{NOWHERE}/a.git\necho done\n", 0o755)
        for arguments in ({"command": "make"}, {"command": "./setup"},
                          {"shell": f"wget -nv -O- https://{NOWHERE}/a | tar xz"},
                          {"shell": f"curl -fsSL https://{NOWHERE}/a 2>&1 || exit 1"},
                          {"shell": f"yes | head -c 2000000 >&2; curl -sS https://{NOWHERE}"}):
            with self.subTest(arguments):
                outcome = self.run_steps(self.step("run_command", **arguments), max_output_bytes=1 << 22)
                self.assert_ends(outcome, "ext_net_required", NOWHERE)

    def test_tests_that_print_such_words(self):
        words = "Could not resolve host: mock.example.org"
        self.put("test_offline.py", "import sys, unittest\n\n\nclass Offline(unittest.TestCase):\n"
                 "    def test_could_not_resolve_host(self):\n"
                 f"        print('curl: (6) {words}', file=sys.stderr)\n"
                 f"        self.assertEqual(1, 2, 'fatal: unable to access: {words}')\n")
        self.put("log", f"curl: (6) {words}\n")
        for arguments in ({"argv": ["python3", "-B", "-m", "unittest"]},
                          {"argv": ["grep", "-r", "resolve", ".", "missing"]},
                          {"shell": "cat log >&2; kill -9 $$"}):
            with self.subTest(arguments):
                self.assert_ends(self.run_steps(self.step("run_command", **arguments)), "step_failed")

    def test_a_service_of_the_jobs_own_that_does_not_run(self):
        self.assert_ends(self.run_steps(self.run_command("curl", args=["-sS", "http://127.0.0.1:1/"])), "step_failed")

    def test_a_step_that_ran_out_of_time_is_a_timeout(self):
        step = self.sh(f"curl -sS https://{NOWHERE}/; sleep 60", timeout_seconds=1)
        self.assert_ends(self.run_steps(step), "timeout")


class Agents(AgentCase):
    CRITERIA = {"acceptance_criteria": ["the data are there"]}

    def end(self, *replies, allowed=False, context=CRITERIA):
        server = self.server(*replies)
        return server, self.run_agent(server, job=self.agent_job(context=context, ext_net_allowed=allowed))

    FETCH = call("run_command", shell=f"curl -sS https://{NOWHERE}/x")
    UNMET = finish("no", ("the data are there", False, "could not be fetched"))

    def test_a_failed_fetch_is_an_answer_to_the_model(self):
        server, outcome = self.end(self.FETCH, runs("true"), finish("done", ("the data are there", True, "step-2")))
        self.assert_end(outcome, 0)
        (shown,) = self.tool_answers(server, 1)
        self.assert_says(shown, "failed (ext_net_required)", "ext_net_allowed is false")

    def test_giving_up_after_it(self):
        _, outcome = self.end(self.FETCH, self.UNMET)
        self.assertEqual(outcome.code, "ext_net_required")
        self.assert_says(outcome.message, "step-1", NOWHERE, "not met: the data are there")
        self.assertEqual(outcome.acceptance[0]["met"], False)

    def test_where_the_outside_is_allowed_the_criterion_is_not_met(self):
        self.assertEqual(self.end(self.FETCH, self.UNMET, allowed=True)[1].code, "acceptance_unmet")


sba.main(__name__)
