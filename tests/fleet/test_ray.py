# SPDX-License-Identifier: Apache-2.0
"""examples/fleet/ray, run by PyPI's ray: jobs that succeed, fail, meet an endpoint that is gone, are cancelled, and
lose their worker."""
import contextlib
import io
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
FLEET, CLIENT = TOP / "examples/fleet/ray", TOP / "clients/python"
sys.path[:0] = [str(TOP / "tests/e2e"), str(FLEET), str(CLIENT)]
import sba  # noqa: E402
import packages  # noqa: E402
import tidy  # noqa: E402
from servers import model  # noqa: E402
from waiting import wait_for  # noqa: E402

RAY = "ray==2.60.0"
UNPRIVILEGED = {"SBA_USER": f"{sba.UID}:{sba.GID}"} if sba.UID else {}


class RayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tidy.place(cls, "r-")
        cls.endpoint = model.Server({"models": {"m": {}}, "replies": []})
        cls.addClassCleanup(cls.endpoint.close)
        # What Ray's processes inherit, and from them the runners.
        os.environ.update(UNPRIVILEGED, PATH=f"{pathlib.Path(sba.BINARY).parent}:{os.environ['PATH']}", PAUSE="0.1",
                          PYTHONPATH=f"{CLIENT}:{FLEET}", OLLAMA_BASE_URL=cls.endpoint.url, RAY_USAGE_STATS_ENABLED="0")
        import ray
        ray.init(num_cpus=4, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=False,
                 _temp_dir=str(cls.place), _node_ip_address="127.0.0.1")
        cls.addClassCleanup(ray.shutdown)
        cls.ray = ray

    def setUp(self):
        import jobs
        self.engine = jobs
        self.jobs = pathlib.Path(tempfile.mkdtemp(prefix="jobs-"))
        self.addCleanup(tidy.remove, self.jobs)
        self.addCleanup(tidy.end, self.jobs)
        self.jobs.chmod(0o755)

    def put(self, name, script, **more):
        """A job of one command, unless more says otherwise; returns its directory."""
        place = self.jobs / name
        (place / "workspace").mkdir(parents=True)
        (place / "home").mkdir()
        steps = [{"type": "run_command", "arguments": {"shell": script}}] if script else []
        (place / "job.json").write_text(json.dumps({
            "protocol_version": "1.0", "job_id": name, "task_id": "ray", "steps": steps,
            "constraints": {"max_runtime_seconds": 600, "max_output_bytes": 65536}, **more}))
        for path in (place, *place.iterdir()):
            os.chown(path, *((sba.UID, sba.GID) if sba.UID else (-1, -1)))
        return place

    def put_waiting(self, name):
        """Its command does something, then waits for the file `go`; a process of it has left its session."""
        waits = "setsid sleep 3600 & touch begun; until [ -e go ]; do sleep 0.1; done; "
        return self.put(name, waits + "echo done >>effects")

    def lines(self, place):
        return (place / "workspace/effects").read_text().split()

    def code(self, place):
        with contextlib.suppress(FileNotFoundError):  # a runner that begins takes the old one away
            return json.loads((place / "result.json").read_text()).get("failure_code")
        return "no result"

    def begin(self, place):
        task = self.engine.run.remote(place)
        wait_for((place / "workspace/begun").exists, f"{place.name} to begin")
        return task

    def assert_gone(self, place):
        try:
            wait_for(lambda: not tidy.processes(place), "all its processes to end")
        except AssertionError as error:
            alive = {pid: pathlib.Path(f"/proc/{pid}/status").read_text() for pid in tidy.processes(place)}
            raise AssertionError(f"{tidy.end(place)}, {alive} {self.code(place)}") from error

    def test_only_what_the_outside_broke_runs_again(self):
        plain = [self.put(str(number), "echo done >>effects") for number in range(8)]
        failing = self.put("failing", "echo done >>effects; exit 1")
        agent = self.put("agent", None, execution_mode="agent_inference", inference={"allowed_models": ["m"]},
                         context={"requirements": ["Write."]})
        self.endpoint.replies[:] = [model.call("run_command", shell="echo done >>effects"), {"fault": "script_ended"},
                                    {"fault": "script_ended"}, model.call("finish", answer="It is done.")]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(self.engine.main(self.jobs), 1)
        self.assertEqual(said.getvalue(), "")
        self.assertEqual({place.name: self.lines(place) for place in (*plain, failing, agent)},
                         {place.name: ["done"] for place in (*plain, failing, agent)})
        self.assertEqual((self.code(failing), self.code(agent)), ("step_failed", None))
        self.assertEqual(self.endpoint.replies, [])

    def test_a_task_that_is_cancelled_leaves_nothing(self):
        for force in (True, False):
            with self.subTest(force=force):
                place = self.put_waiting(f"cancelled-{force}")
                task = self.begin(place)
                self.ray.cancel(task, force=force)
                errors = self.ray.exceptions
                with self.assertRaises((errors.TaskCancelledError, errors.WorkerCrashedError)):
                    self.ray.get(task)
                self.assert_gone(place)
                wait_for(lambda place=place: self.code(place) == "cancelled", "the result")
                (place / "workspace/go").touch()
                self.assertEqual(self.ray.get(self.engine.run.remote(place)), "success")
                self.assertEqual(self.lines(place), ["done"])

    def test_a_worker_that_is_killed(self):
        place = self.put_waiting("killed")
        task = self.begin(place)
        before = {pid for pid in tidy.processes(place)}
        journal = (place / "journal.jsonl").read_bytes()
        runner = next(pid for pid in before if b"--resume" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
        worker = int(pathlib.Path(f"/proc/{runner}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: not before & set(tidy.processes(place)), "the first runner's processes to end")
        (place / "workspace/go").touch()
        self.assertEqual(self.ray.get(task), "success")
        self.assertEqual(self.lines(place), ["done"])
        self.assertTrue((place / "journal.jsonl").read_bytes().startswith(journal.splitlines()[0]), "it went on")
        self.assert_gone(place)


packages.enter(RAY, oldest=(3, 11))
sba.main(__name__)
