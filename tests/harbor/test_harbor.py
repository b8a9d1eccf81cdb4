# SPDX-License-Identifier: Apache-2.0
"""examples/harbor: the agent for Harbor, run by PyPI's harbor on the three tasks there, with scripted models over the
real wire.

There is no container here: local_environment.py stands for one through Harbor's interface for environments. Needs root
and PyPI.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import packages  # noqa: E402
from servers import model  # noqa: E402
from servers.model import call  # noqa: E402

EXAMPLE = HERE.parents[1] / "examples" / "harbor"
TASKS = sorted(path.name for path in (EXAMPLE / "tasks").iterdir())
CLIENT = HERE.parents[1] / "clients" / "python"
HARBOR = "harbor==0.24.0"


def solver(task):
    """A model that does what the task's solution does, looks at it, and says so."""
    return [call("list_tree", path="."),
            call("run_command", shell=(EXAMPLE / "tasks" / task / "solution" / "solve.sh").read_text()),
            call("run_command", shell="cat *.sh answer.txt; true"), call("finish", answer="It is done.")]


class Server(model.Server):
    def __init__(self):
        super().__init__({"models": {"m": {"capabilities": ["completion", "tools"]}}, "replies": []})
        self.scripts = {(EXAMPLE / "tasks" / task / "instruction.md").read_text().strip(): solver(task)
                        for task in TASKS}

    def chat(self, connection, request, form):
        said = "\n".join(message.get("content") or "" for message in request["body"]["messages"])
        self.replies[:] = next((script for task, script in self.scripts.items() if task in said), [])[:1]
        for task, script in self.scripts.items():
            if task in said:
                del script[:1]
        return super().chat(connection, request, form)


@unittest.skipIf(os.geteuid() or subprocess.run(["unshare", "--mount", "true"]).returncode,
                 "only root can enter a root directory, where unshare works")
class HarborTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = packages.environment("harbor-2", HARBOR, "atif==1.8.0")

    def setUp(self):
        self.jobs = pathlib.Path(tempfile.mkdtemp(prefix="sba-harbor-jobs-"))
        self.addCleanup(shutil.rmtree, self.jobs)

    def run_harbor(self, *more, endpoint=None):
        """The results of the trials by task, and what harbor printed."""
        environment = {**os.environ, "PYTHONPATH": f"{EXAMPLE}:{HERE}:{CLIENT}", "HARBOR_TELEMETRY": "off",
                       "HOME": str(self.jobs), "CYNODE_SBA_BINARY": os.environ["SBA_BINARY"]}
        done = subprocess.run(
            [self.programs / "harbor", "run", "--path", EXAMPLE / "tasks", "--agent", "cynode_sba_agent:CynodeSba",
             "--model", "m", "--env", "local_environment:LocalEnvironment", "--jobs-dir", self.jobs, "--job-name",
             "job", "--n-concurrent", "1", "--quiet", "--yes", *(("--ae", endpoint) if endpoint else ()), *more],
            env=environment, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
        said = done.stdout + done.stderr
        results = [json.loads(path.read_text()) for path in (self.jobs / "job").glob("*/result.json")]
        return {result["task_name"].split("/")[-1]: result for result in results}, said

    def rewards(self, results):
        return {task: result["verifier_result"] and result["verifier_result"]["rewards"]["reward"]
                for task, result in results.items()}

    def logs(self, task):
        return next((self.jobs / "job").glob(f"{task}__*")) / "agent"

    def test_tasks_that_a_model_solves(self):
        for name, suffix in (("OLLAMA_BASE_URL", ""), ("OPENAI_BASE_URL", "/v1")):
            with self.subTest(name), Server() as server:
                shutil.rmtree(self.jobs / "job", ignore_errors=True)
                results, said = self.run_harbor(endpoint=f"{name}={server.url}{suffix}")
                self.assertEqual(self.rewards(results), {task: 1 for task in TASKS}, said[-3000:])
                for task, result in results.items():
                    self.assertIsNone(result["exception_info"])
                    self.assertEqual(result["agent_info"]["name"], "cynode-sba")
                    self.assertGreater(result["agent_result"]["n_input_tokens"], 0)
                    self.assertEqual(result["agent_result"]["metadata"]["status"], "success")
                    trajectory = self.logs(task) / "trajectory.json"
                    subprocess.run([self.programs / "python", "-c",
                                    "import sys; from harbor.models.trajectories import Trajectory\n"
                                    "Trajectory.model_validate_json(open(sys.argv[1]).read())", trajectory], check=True)
                    self.assertEqual(len(json.loads(trajectory.read_text())["steps"]), 6)

    def test_no_endpoint_is_an_error_and_no_failure_of_the_model(self):
        for endpoint, words in (("OLLAMA_BASE_URL=http://127.0.0.1:9", "inference_unavailable"),
                                (None, "no endpoint is named")):
            with self.subTest(endpoint):
                shutil.rmtree(self.jobs / "job", ignore_errors=True)
                # The job waits for an endpoint until its time is up.
                results, said = self.run_harbor("--include-task-name", "*shout*", "--agent-kwarg",
                                                "max_runtime_seconds=10", endpoint=endpoint)
                self.assertEqual(len(results), 1, said[-3000:])
                self.assertIn(words, results["shout"]["exception_info"]["exception_message"])


unittest.main(verbosity=2)
