# SPDX-License-Identifier: Apache-2.0
"""`ext_net_required`: real tools where the outside is missing (situation.py), and jobs that fail for it, or for something else."""
import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import sba
from agent_case import AgentCase, call, finish

SITUATION = pathlib.Path(__file__).with_name("situation.py")
HOST = "files.example.org"  # nobody has it
URL, PLAIN_URL = f"https://{HOST}/data.tar.gz", f"http://{HOST}/data.tar.gz"
APT = "apt-get -q -o Dir=./ -o Dir::Etc::trustedparts=/etc/apt/trusted.gpg.d -o APT::Sandbox::User= -o Debug::NoLocking=1 " \
      "-o Acquire::Retries=0 -o Dir::State::status=status -o Dir::Bin::methods=/usr/lib/apt/methods"
APT_LIST = f"var/lib/apt/lists/{HOST}_debian_dists_bookworm_"
COMMANDS = {
    "curl": f"curl -sS -m 20 {URL}",
    "curl-fail": f"curl -fsSL -m 20 {PLAIN_URL}",
    "wget": f"wget -t 1 -T 5 {URL}",
    "git": f"git clone https://{HOST}/a.git",
    "pip": f"/usr/bin/python3 -m pip install --break-system-packages --index-url https://{HOST}/simple --retries 1 --timeout 3 leftpad",
    "npm": "npm install",
    "python": f"""/usr/bin/python3 -c "import urllib.request; urllib.request.urlopen('{URL}', timeout=5)" """,
    "apt-get": f"{APT} install -y left-pad",
    "go": f"{shutil.which('go') or 'go'} mod download",
}
FILES = {
    "go": {"go.mod": "module a\ngo 1.18\nrequire example.org/left v1.0.0\n"},
    "npm": {"package.json": '{"name": "a", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}\n',
            ".npmrc": f"registry=https://{HOST}/\nfetch-retries=0\nupdate-notifier=false\n"},
    "apt-get": {
        "etc/apt/sources.list": f"deb [trusted=yes] http://{HOST}/debian bookworm main\n", "var/lib/apt/lists/partial/x": "",
        "var/cache/apt/archives/partial/x": "", "var/lib/apt/status": "",
        APT_LIST + "main_binary-amd64_Packages":
        "Package: left-pad\nVersion: 1.0\nArchitecture: amd64\nMaintainer: a\nFilename: pool/l/left-pad_1.0_amd64.deb\nSize: 1000\n"
        f"SHA256: {'0' * 64}\nDescription: a\n",
        APT_LIST + "Release": "Origin: a\nSuite: stable\nCodename: bookworm\nComponents: main\nArchitectures: amd64\n"
                              "Date: Sat, 01 Jan 2022 00:00:00 UTC\n"},
}
SITUATIONS = ("no_network", "no_such_name", "proxy_refuses")
# What a proxy refused where the outside is allowed: they name the proxy, or the URL is http://.
BY_POLICY = ("curl", "wget", "git", "pip", "python", "go", "curl-fail", "apt-get")
NOWHERE = "no-such-host.invalid"
FETCH = sba.SandboxCase.step("run_command", shell=f"curl -sS https://{NOWHERE}/x")


def is_installed(name):
    program = shlex.split(COMMANDS[name])[0]
    has_pip = name != "pip" or subprocess.run([program, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    return shutil.which(program) is not None and has_pip


class Tools(sba.SandboxCase):
    def judge(self, name, where, allowed=False):
        """The result of one tool's job in one situation; None where the situation cannot be had."""
        case = self.fresh()
        for path, text in FILES.get(name, {}).items():
            case.put(path, text)
        env = {"HOME": str(case.workspace), "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GOPROXY": f"https://{HOST}",
               "GOFLAGS": "-mod=mod", "GONOSUMDB": "*", "GOTOOLCHAIN": "local"}
        job = case.job(case.step("run_command", argv=shlex.split(COMMANDS[name])))
        job["constraints"]["ext_net_allowed"] = allowed
        outcome = case.run_job(job, wrapper=(sys.executable, "-B", str(SITUATION), where),
                               env={**env, **({"SITUATION_USER": str(sba.UID)} if sba.UID else {})}, **sba.AS_ROOT)
        return None if outcome.exit == 77 else outcome.result

    def judge_all(self, cases):
        """What judge gives for each case, by the case."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
            results = dict(zip(cases, several.map(lambda case: self.judge(*case), cases)))
        if None in results.values():
            self.skipTest("namespaces cannot be had here")
        return results

    def test_each_tool_that_is_installed_in_each_situation(self):
        names = [name for name in COMMANDS if is_installed(name)]
        for (name, where), result in self.judge_all([(name, where) for name in names for where in SITUATIONS]).items():
            with self.subTest(f"{name} {where}"):
                step = result["steps"][0]
                self.assertEqual((result["failure_code"], step["error_code"]), ("ext_net_required", "ext_net_required"), step["result"])
                self.assertRegex(result["failure_message"], f"it wanted the (host {HOST}|outside), and the job's ext_net_allowed is false: .")

    def test_a_proxy_that_refuses_is_a_policy_where_the_outside_is_allowed(self):
        names = [name for name in BY_POLICY if is_installed(name)]
        cases = [(name, "proxy_refuses", True) for name in names] + [("curl", "no_such_name", True)]
        for (name, where, _), result in self.judge_all(cases).items():
            with self.subTest(f"{name} {where}"):
                wanted = "ext_net_required" if where == "proxy_refuses" else "step_failed"
                self.assertEqual(result["failure_code"], wanted, result["steps"][0]["result"])


class Jobs(sba.SandboxCase):
    def assert_ends(self, outcome, code, *words):
        self.assertEqual(outcome.result["failure_code"], code, outcome.result)
        for word in words:
            self.assertIn(word, outcome.result["failure_message"])

    def test_what_was_wanted_is_said_in_result_and_log(self):
        outcome = self.run_job(self.job(self.step("run_command", command="true"), FETCH, self.step("run_command", command="true")))
        self.assert_ends(outcome, "ext_net_required", "step 2 (step-2, run_command): the command `curl", "exit code 6",
                         f"it wanted the host {NOWHERE}, and the job's ext_net_allowed is false: curl: (6) Could not resolve host")
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
        self.put("log", "curl: (6) Could not resolve host: mock.example.org\n")
        for arguments in ({"argv": ["python3", "-B", "-m", "unittest"]}, {"argv": ["grep", "-r", "resolve", ".", "missing"]},
                          {"shell": "cat log >&2; kill -9 $$"}):
            with self.subTest(arguments):
                self.assert_ends(self.run_job(self.job(self.step("run_command", **arguments))), "step_failed")

    def test_a_service_of_the_jobs_own_that_does_not_run(self):
        self.assert_ends(self.run_job(self.job(self.step("run_command", argv=["curl", "-sS", "http://127.0.0.1:1/"]))), "step_failed")

    def test_a_step_that_ran_out_of_time_is_a_timeout(self):
        step = self.step("run_command", shell=f"curl -sS https://{NOWHERE}/; sleep 60", timeout_seconds=1)
        self.assert_ends(self.run_job(self.job(step)), "timeout")


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
        (shown,) = self.tool_answers(server, 1)
        self.assertIn("failed (ext_net_required)", shown)
        self.assertIn("ext_net_allowed is false", shown)

    def test_giving_up_after_it(self):
        _, outcome = self.end(self.FETCH, self.UNMET)
        self.assertEqual(outcome.result["failure_code"], "ext_net_required")
        for words in ("step-1", NOWHERE, "not met: the data are there"):
            self.assertIn(words, outcome.result["failure_message"])
        self.assertEqual(outcome.result["acceptance"][0]["met"], False)

    def test_where_the_outside_is_allowed_the_criterion_is_not_met(self):
        self.assertEqual(self.end(self.FETCH, self.UNMET, allowed=True)[1].result["failure_code"], "acceptance_unmet")


if __name__ == "__main__":
    sba.main()
