# SPDX-License-Identifier: Apache-2.0
"""examples/fleet/slurm, run by Debian's Slurm: an array of 100 jobs, of which some meet an endpoint that is gone, some
are ended from outside, and some fail by themselves."""
import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "e2e"))
import sba  # noqa: E402
import slurm  # noqa: E402
import tidy  # noqa: E402
from servers import model  # noqa: E402
from waiting import wait_for  # noqa: E402

FLEET = TOP / "examples" / "fleet"
SCRIPT = FLEET / "slurm" / "jobs.sbatch"
CLIENT = {**os.environ, "PYTHONPATH": str(TOP / "clients" / "python")}
TASKS, AT_ONCE = 100, 12

UNAVAILABLE = range(0, TASKS, 10)  # whose endpoint is gone in the middle of the job
CANCELLED, REQUEUED, KILLED = 55, 66, 33  # from outside, while the second command of each waits for the file `go`
TIMEOUT, FAILED, REFUSED = 44, 77, 88  # by themselves
WAITING = {CANCELLED, REQUEUED, KILLED}
BY_THEMSELVES = {TIMEOUT: "124:0", FAILED: "1:0", REFUSED: "2:0"}

# What a command does counts once it is done.
EFFECT = "echo {} >>effects"
WAITS = "trap 'echo TERM >>signals' TERM; touch begun; until [ -e go ]; do sleep 0.1; done; " + EFFECT.format("second")


class Endpoint(model.Server):
    """Of all jobs: two commands, then the end. It tells them apart by what they ask for."""

    def __init__(self):
        super().__init__({"models": {"m": {}}, "replies": []})
        self.is_broken = True

    def next_reply(self, body):
        asked = json.dumps(body["messages"])
        task = next(task for task in range(TASKS) if f"task number {task}." in asked)
        done = sum(message["role"] == "tool" for message in body["messages"])
        if task in WAITING and "[The job ended here" in asked:
            done -= 1  # the command that was interrupted: the model is told so, and decides
        if done == 0:
            return model.call("run_command", shell=EFFECT.format("first"))
        if self.is_broken and task in UNAVAILABLE:
            return {"fault": "script_ended"}
        if done == 1:
            slow = WAITS if task in WAITING else "sleep 600" if task == TIMEOUT else EFFECT.format("second")
            return model.call("run_command", shell=slow)
        return model.call("finish", answer="It is done.", status="failed" if task == FAILED else "done")


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tidy.place(cls, "slurm-")
        cls.cluster = slurm.Cluster(cls.place, AT_ONCE)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        self.endpoint = Endpoint()
        self.addCleanup(self.endpoint.close)
        self.work = self.place / "work"
        self.jobs = self.work / "jobs"
        for task in range(TASKS):
            directory = self.jobs / str(task)
            directory.mkdir(parents=True)
            (directory / "job.json").write_text(json.dumps(self.job(task)))
        for path in (self.work, self.jobs, *self.jobs.iterdir()):
            os.chown(path, self.cluster.user.pw_uid, self.cluster.user.pw_gid)

    @staticmethod
    def job(task):
        return {
            "protocol_version": "1.0" if task != REFUSED else "9.9", "job_id": f"job-{task}", "task_id": "array",
            "constraints": {"max_runtime_seconds": 5 if task == TIMEOUT else 600, "max_output_bytes": 65536},
            "execution_mode": "agent_inference", "inference": {"allowed_models": ["m"]},
            "context": {"requirements": [f"This is task number {task}."]}, "steps": []}

    def submit(self, *options):
        """Returns the array's job id."""
        path = f"{pathlib.Path(sba.BINARY).parent}:{slurm.PATH}"
        return self.cluster.run("sbatch", "--parsable", *options, str(SCRIPT), cwd=self.work,
                                env={"PATH": path, "OLLAMA_BASE_URL": self.endpoint.url}).strip()

    def wait_until(self, array, what, condition):
        """Until it holds for what scontrol says of the array's tasks; returns that."""
        seen = {}

        def holds():
            seen.update(self.cluster.jobs(array))
            return condition(seen)
        try:
            wait_for(holds, what)
        except AssertionError as error:
            states = collections.Counter((task["JobState"], task["ExitCode"], task["Reason"]) for task in seen.values())
            raise AssertionError(f"{error}; {states}\n{self.cluster.words()}") from error
        return seen

    def wait_for_end(self, array, tasks):
        active = {"PENDING", "RUNNING", "COMPLETING", "REQUEUED"}
        return self.wait_until(array, "all tasks to end", lambda seen: tasks <= set(seen) and not any(
            task["JobState"] in active for task in seen.values()))

    def lines(self, task, name):
        with contextlib.suppress(FileNotFoundError):
            return (self.jobs / str(task) / "workspace" / name).read_text().split()
        return []

    def result(self, task):
        return json.loads((self.jobs / str(task) / "result.json").read_text())

    def collected(self):
        done = subprocess.run([sys.executable, "-m", "cynode_sba.collect", "--format", "json", self.jobs],
                              capture_output=True, text=True, env=CLIENT)
        return done.returncode, json.loads(done.stdout)

    def assert_collected(self, succeeded, failed, blame):
        status, said = self.collected()
        self.assertEqual(status, 0 if succeeded == TASKS else 1)
        self.assertEqual({row["job_id"] for row in said["jobs"]}, {f"job-{task}" for task in range(TASKS)})
        of_all = said["summary"]
        self.assertEqual((of_all["jobs"], of_all["succeeded"], of_all["failed"], of_all["blame"]),
                         (TASKS, succeeded, failed, blame))

    def again(self):
        done = subprocess.run([sys.executable, FLEET / "again.py", self.jobs],
                              capture_output=True, text=True, env=CLIENT, check=True)
        return done.stdout.strip()

    def kill_runner(self, task):
        """As the kernel does where memory runs out."""
        path = str(self.jobs / str(task) / "job.json").encode()
        for pid in tidy.processes(self.jobs / str(task)):
            with contextlib.suppress(FileNotFoundError):
                if path in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    return os.kill(pid, signal.SIGKILL)
        return self.fail(f"the runner of task {task} is gone")

    def break_from_outside(self, array):
        for task in WAITING:
            wait_for((self.jobs / str(task) / "workspace" / "begun").exists, f"task {task} to begin")
        self.cluster.run("scancel", f"{array}_{CANCELLED}")
        self.kill_runner(KILLED)
        self.cluster.run("scontrol", "requeue", f"{array}_{REQUEUED}")
        self.wait_until(array, "the tasks whose endpoint is gone to be requeued",
                        lambda seen: all(task in seen and seen[task]["Restarts"] != "0" for task in UNAVAILABLE))

    def test_what_the_outside_broke_runs_again_and_nothing_else(self):
        array = self.submit(f"--array=0-{TASKS - 1}%{AT_ONCE}")
        self.break_from_outside(array)
        # Only then does a second try find what the first one waited for.
        for task in (CANCELLED, REQUEUED):
            wait_for(lambda log=self.jobs / str(task) / "log": '"job.finished"' in log.read_text(),
                     f"the first try of task {task} to end")
        wait_for(lambda: not tidy.processes(self.jobs / str(KILLED)), "the killed task's processes to end")
        self.endpoint.is_broken = False
        for task in WAITING:
            (self.jobs / str(task) / "workspace" / "go").touch()
        tasks = self.wait_for_end(array, set(range(TASKS)))

        again = {*UNAVAILABLE, REQUEUED}
        self.assertEqual({task for task in tasks if tasks[task]["Restarts"] != "0"}, again)
        self.assertEqual({task: tasks[task]["ExitCode"] for task in BY_THEMSELVES}, BY_THEMSELVES)
        self.assertEqual(tasks[CANCELLED]["JobState"], "CANCELLED")
        self.assertEqual(tasks[KILLED]["ExitCode"], "0:9")
        self.assertEqual({task for task in tasks if tasks[task]["JobState"] != "COMPLETED"},
                         {*BY_THEMSELVES, CANCELLED, KILLED})
        self.assertEqual((self.result(CANCELLED)["failure_code"], self.result(KILLED)["failure_code"]),
                         ("cancelled", "interrupted"))
        self.assertLessEqual(len(self.lines(CANCELLED, "signals")), 2)  # Slurm's SIGTERM and the runner's
        self.assertIn("TERM", self.lines(CANCELLED, "signals"))
        broken = {"cancelled": 1, "interrupted": 1}
        own = {"timeout": 1, "agent_gave_up": 1, "schema_validation": 1}
        self.assert_collected(95, {**broken, **own}, {"outside": 2, "job": 3})

        self.assertEqual(self.again(), f"{KILLED},{CANCELLED}")
        self.wait_for_end(self.submit(f"--array={self.again()}"), {KILLED, CANCELLED})
        self.assert_collected(97, own, {"job": 3})
        self.assertEqual(self.again(), "")
        whole = {task: self.lines(task, "effects") for task in range(TASKS) if task not in BY_THEMSELVES}
        self.assertEqual({task: effects for task, effects in whole.items() if effects != ["first", "second"]}, {})
        self.assertEqual([self.lines(task, "effects") for task in BY_THEMSELVES], [["first"], ["first", "second"], []])

        # A task that succeeded, once more: its result is written again, and that is all.
        before = self.result(1)
        self.wait_for_end(self.submit("--array=1"), {1})
        self.assertEqual((self.lines(1, "effects"), self.result(1)), (["first", "second"], before))


if not all(shutil.which(program, path=slurm.PATH) for program in slurm.PROGRAMS):
    sba.skip("there is no Slurm here (Debian's munge, slurmctld, slurmd, slurm-client)")
sba.main(__name__)
