# SPDX-License-Identifier: Apache-2.0
"""`ext_net_required`: real tools where the outside is missing (network/situation.py), and jobs that fail for it, or for something else.
What more tools say is in network/learned.jsonl, to which spec/result/network_spec.lua holds the rule."""
import concurrent.futures
import os
import pathlib
import sys

import sba
from network import tools
from test_agent import AgentCase, call, finish

NETWORK = pathlib.Path(__file__).resolve().parent.parent / "network"

NOWHERE = "no-such-host.invalid"
TOOLS = ("curl", "curl-address", "wget", "git-https", "git-ssh", "git-git", "pip", "npm", "apt-get-install", "rsync", "ssh", "nc",
         "openssl", "perl-lwp", "python-urllib", "node-fetch")
# One of each other program, in one situation; but for those that do not say what was missing, or want a right that no command of a
# job has.
PROGRAMS = {tools.command(name)[0] for name in TOOLS} | {"sh", "cpanm", "Rscript", "ping", "busybox", "mvn"}
OTHERS = {tools.command(name)[0]: name for name in tools.COMMANDS if tools.command(name)[0] not in PROGRAMS}.values()
# The dev build takes its time to start, and the rule is the same.
TOOLS, OTHERS = (TOOLS[:3], ()) if sba.IS_DEV else (TOOLS, OTHERS)
SITUATIONS = ("no_network", "no_such_name", "proxy_refuses", "proxy_dead")
FETCH = sba.SandboxCase.step("run_command", shell=f"curl -sS https://{NOWHERE}/x")


class Tools(sba.SandboxCase):
    def judge(self, name, where):
        """The job of one tool in one situation: (failure code, message); None where the situation cannot be had."""
        case = sba.SandboxCase()
        case.setUp()
        try:
            tools.lay_out(name, case.workspace, sba.UID)
            user = {"user": None, "group": None, "extra_groups": None} if sba.UID else {}
            outcome = case.run_job(
                case.job(case.step("run_command", argv=tools.command(name))), wrapper=(sys.executable, "-B", str(NETWORK / "situation.py"), where),
                env={**tools.environment(str(case.workspace)), **({"SITUATION_USER": str(sba.UID)} if sba.UID else {})}, **user)
            if outcome.exit == 77:
                return None
            return outcome.result["failure_code"], outcome.result["failure_message"], outcome.result["steps"]
        finally:
            case.doCleanups()

    def test_each_tool_that_is_installed_in_each_situation(self):
        cases = [(name, where) for name in TOOLS if tools.is_installed(name) for where in SITUATIONS]
        cases += [(name, "no_network") for name in sorted(OTHERS) if tools.is_debians(name)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
            verdicts = list(several.map(lambda one: self.judge(*one), cases))
        if None in verdicts:
            self.skipTest("namespaces cannot be had here")
        for (name, where), (code, message, steps) in zip(cases, verdicts):
            with self.subTest(f"{name} {where}"):
                if name in ("curl-address", "python-urllib") and where == "proxy_refuses" and not code:
                    continue  # the proxy's page, taken for the answer
                self.assertEqual((code, steps[0]["error_code"]), ("ext_net_required", "ext_net_required"), (message, steps[0]["result"]))
                self.assertRegex(message, f"it wanted .*({tools.HOST}|{tools.ADDRESS}|leftpad|the outside).*, and the job's ext_net_allowed")
        for name in (*TOOLS, *sorted(OTHERS)):
            with self.subTest(name):
                if not (tools.is_installed if name in TOOLS else tools.is_debians)(name):
                    self.skipTest(f"{name} is not installed as Debian has it")


class Jobs(sba.SandboxCase):
    def assert_ends(self, outcome, code, *words):
        self.assertEqual(outcome.result["failure_code"], code, outcome.result)
        for word in words:
            self.assertIn(word, outcome.result["failure_message"])

    def test_what_was_wanted_is_said_in_result_and_log(self):
        outcome = self.run_job(self.job(self.step("run_command", command="true"), FETCH, self.step("run_command", command="true")))
        self.assert_ends(outcome, "ext_net_required", "step 2 (step-2, run_command): the command `curl", "exit code 6",
                         f"it wanted the host {NOWHERE}, whose name does not resolve")
        self.assertEqual((outcome.exit, outcome.result["status"]), (1, "failure"))
        self.assertEqual([one["status"] for one in outcome.result["steps"]], ["success", "failure", "skipped"])
        self.assertEqual(outcome.log[-1]["failure_code"], "ext_net_required")

    def test_a_job_that_may_have_the_outside_has_a_failed_step(self):
        job = self.job(FETCH)
        job["constraints"]["ext_net_allowed"] = True
        self.assert_ends(self.run_job(job), "step_failed", "exit code 6")

    def test_through_make_and_scripts(self):
        self.put("Makefile", f"data:\n\tcurl -sSo data https://{NOWHERE}/x\n")
        self.put("setup", f"#!/bin/sh\nset -e\necho fetching\ngit clone https://{NOWHERE}/a.git\necho done\n", 0o755)
        for arguments in ({"command": "make"}, {"command": "./setup"}, {"shell": f"wget -nv -O- https://{NOWHERE}/a | tar xz"},
                          {"shell": f"curl -fsSL https://{NOWHERE}/a 2>&1 || exit 1"}):
            with self.subTest(arguments):
                self.assert_ends(self.run_job(self.job(self.step("run_command", **arguments))), "ext_net_required", NOWHERE)

    def test_tests_that_print_such_words(self):
        self.put("test_offline.py", "import sys, unittest\n\n\nclass Offline(unittest.TestCase):\n"
                 "    def test_could_not_resolve_host(self):\n"
                 "        print('curl: (6) Could not resolve host: mock.example.org', file=sys.stderr)\n"
                 "        self.assertEqual(1, 2, 'fatal: unable to access: Could not resolve host: mock.example.org')\n")
        self.put("Makefile", "check:\n\t@echo 'curl: (6) Could not resolve host: mock.example.org' >&2; exit 1\n")
        self.put("log", "curl: (6) Could not resolve host: mock.example.org\n")
        for arguments in ({"argv": ["python3", "-B", "-m", "unittest"]}, {"argv": ["make", "check"]}, {"shell": "cat log; exit 6"},
                          {"shell": "cat log >&2; exit 1"}, {"argv": ["grep", "-r", "resolve", ".", "missing"]},
                          {"shell": "cat log >&2; echo '6 of 9 tests failed'; exit 6"}):
            with self.subTest(arguments):
                self.assert_ends(self.run_job(self.job(self.step("run_command", **arguments))), "step_failed")

    def test_a_service_of_the_jobs_own_that_does_not_run(self):
        self.assert_ends(self.run_job(self.job(self.step("run_command", argv=["curl", "-sS", "http://127.0.0.1:1/"]))), "step_failed")

    def test_a_step_that_ran_out_of_time_is_a_timeout(self):
        step = self.step("run_command", shell=f"curl -sS https://{NOWHERE}/; sleep 60", timeout_seconds=1)
        self.assert_ends(self.run_job(self.job(step)), "timeout")

    def test_much_on_stderr_costs_little(self):
        shell = f"head -c 67108864 /dev/zero | tr '\\0' x >&2; echo >&2; curl -sS https://{NOWHERE}/"
        outcome = self.run_job(self.job(self.step("run_command", shell=shell), max_output_bytes=1 << 27))
        self.assert_ends(outcome, "ext_net_required", NOWHERE)

    def test_resumed(self):
        job = self.job(FETCH)
        self.assert_ends(self.run_job(job), "ext_net_required")
        journal = self.job_folder / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(line for line in lines if b'"job_finished"' not in line))
        self.assert_ends(self.run_job(job, "--resume"), "ext_net_required", NOWHERE)


class Agents(AgentCase):
    CRITERIA = {"acceptance_criteria": ["the data are there"]}

    def end(self, *replies, allowed=False, context=CRITERIA):
        server = self.server(*replies)
        job = self.agent_job(context=context)
        job["constraints"]["ext_net_allowed"] = allowed
        return server, self.run_agent(server, job=job)

    FETCH = call("run_command", shell=f"curl -sS https://{NOWHERE}/x")
    UNMET = finish("no", ("the data are there", False, "could not be fetched"))

    def test_a_failed_fetch_is_an_answer_to_the_model(self):
        server, outcome = self.end(self.FETCH, call("run_command", command="true"), finish("done", ("the data are there", True, "step-2")))
        self.assertEqual((outcome.exit, outcome.result["failure_code"]), (0, None))
        shown = [message["content"] for message in self.chats(server)[1]["messages"] if message["role"] == "tool"]
        self.assertIn("failed (ext_net_required)", shown[0])
        self.assertIn("ext_net_allowed is false", shown[0])

    def test_giving_up_after_it(self):
        _, outcome = self.end(self.FETCH, self.UNMET)
        self.assertEqual(outcome.result["failure_code"], "ext_net_required")
        for words in ("step-1", NOWHERE, "not met: the data are there"):
            self.assertIn(words, outcome.result["failure_message"])
        self.assertEqual(outcome.result["acceptance"][0]["met"], False)

    def test_evidence_that_names_it(self):
        _, outcome = self.end(self.FETCH, call("run_command", command="true"),
                              finish("no", ("the data are there", False, "step-1 had no network")))
        self.assertEqual(outcome.result["failure_code"], "ext_net_required")

    def test_the_same_fetch_again_and_again(self):
        _, outcome = self.end(*[self.FETCH] * 4, context={})
        self.assertEqual(outcome.result["failure_code"], "ext_net_required")
        self.assertIn("round in circles", outcome.result["failure_message"])

    def test_other_ends(self):
        true, false = (call("run_command", command=name) for name in ("true", "false"))
        for replies in ([self.FETCH, true, self.UNMET], [self.FETCH, false, self.UNMET], [false, self.UNMET]):
            self.assertEqual(self.end(*replies)[1].result["failure_code"], "acceptance_unmet")
        self.assertEqual(self.end(self.FETCH, self.UNMET, allowed=True)[1].result["failure_code"], "acceptance_unmet")
        self.assertEqual(self.end(self.FETCH, *[{"content": " "}] * 3)[1].result["failure_code"], "agent_stuck")


if __name__ == "__main__":
    sba.main()
