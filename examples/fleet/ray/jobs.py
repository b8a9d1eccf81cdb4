# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs DIR/NAME/job.json on Ray, each in a task of its own, and sums up their results. See README.md.

    python3 jobs.py DIR
"""
import contextlib
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import time

import cynode_sba
import ray

PAUSE = float(os.environ.get("PAUSE", "60"))  # seconds before a job runs again whose endpoint was gone


class TryAgain(Exception):
    """What stopped the job lies outside of it and may pass: only then does Ray run it again."""


def wait_for_earlier(place: pathlib.Path) -> None:
    """The runner of a worker that was killed takes seconds to end its commands. Until then it holds the journal's lock."""
    with contextlib.suppress(FileNotFoundError), open(place / "journal.jsonl", "rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_SH)


# Else a worker that Ray ends kills the runner, and what left its session lives on.
LEAVE_RUNNER = {"env_vars": {"RAY_kill_child_processes_on_worker_exit": "false"}}


# max_retries counts workers that are lost, too. An agent waits for its model most of the time.
@ray.remote(num_cpus=0.5, max_retries=4, retry_exceptions=[TryAgain], runtime_env=LEAVE_RUNNER)
def run(place: pathlib.Path) -> str:
    """Runs a job in its directory, or goes on with it; returns its status."""
    wait_for_earlier(place)
    workspace, home = place / "workspace", place / "home"
    for directory in (workspace, home):
        directory.mkdir(exist_ok=True)
    # A worker that is killed ends nothing: the runner ends with it. HOME is of its own, for commands may write there.
    variables = {"SBA_DIE_WITH_PARENT": str(os.getpid()), "HOME": str(home)}
    job = json.loads((place / "job.json").read_text())
    outcome = cynode_sba.run(job, workspace, directory=place, options=["--resume"], environment=variables)
    if outcome.result.get("retryable"):
        time.sleep(PAUSE)
        raise TryAgain(outcome.result["failure_message"])
    return outcome.result["status"]


def main(directory: pathlib.Path) -> int:
    """A task that fails does not stop the others: what became of each is in its result."""
    left = [run.remote(job.parent.resolve()) for job in sorted(directory.glob("*/job.json"))]
    while left:
        (done,), left = ray.wait(left)
        try:
            ray.get(done)
        except ray.exceptions.RayError as error:
            print(str(error).strip().splitlines()[-1], file=sys.stderr)
    return subprocess.run([sys.executable, "-m", "cynode_sba.collect", directory], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
