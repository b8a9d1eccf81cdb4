# SPDX-License-Identifier: Apache-2.0
"""Runs a job with cynode-sba, as a process or in a container, and returns its typed result.

    import cynode_sba
    outcome = cynode_sba.run(job, workspace="project")
    print(outcome.result["status"], outcome.result["steps"][0].get("output"))
"""
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence

from .types import Job, Result

__all__ = ["Job", "Outcome", "Result", "RunnerError", "run"]

# Seconds that the runner may take beyond the job's own time: 3 to report the beginning, 5 to end the job, 35 to report its end; and a
# container has to start.
GRACE = 60
ENDING = 30  # seconds that a cancelled one may take
LOOK = 0.2  # seconds between two looks at what interrupts us


class RunnerError(Exception):
    """There is no result: the runner could not be started, or could not write it. The message has its last words."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    result: Result
    exit_code: int
    log: list[dict]
    """The log's events."""
    directory: pathlib.Path
    """Where job, result, journal and artifacts are."""

    @property
    def succeeded(self) -> bool:
        return self.result["status"] == "success"

    def artifact(self, path: str) -> bytes:
        """The content of an artifact of the result."""
        if path not in (artifact["path"] for artifact in self.result["artifacts"]):
            raise KeyError(path)
        return (self.directory / "artifacts" / path).read_bytes()


def _program(name: str) -> str:
    """Of a wheel in an environment that is not activated, the program stands beside the interpreter."""
    beside = pathlib.Path(sysconfig.get_path("scripts"), name)
    return str(beside) if not shutil.which(name) and beside.exists() else name


def _command(directory: pathlib.Path, workspace: pathlib.Path, binary: str, image: str | None, runtime: str,
             runtime_options: Sequence[str], options: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    if image is None:
        return [_program(binary), "--job", f"{directory}/job.json", "--result", f"{directory}/result.json", "--workspace", str(workspace),
                "--log-format", "json", *options]
    return [runtime, "run", "--rm", *(f"--env={name}" for name in variables), f"--volume={directory}:/job",
            f"--volume={workspace}:/workspace", "--workdir=/workspace", *runtime_options, image, "--log-format", "json", *options]


def _new_directory() -> str:
    """A new job directory, where commands may not write: that is, not in /tmp."""
    runtime, state = (os.environ.get(name) for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"))
    above = pathlib.Path(runtime or state or pathlib.Path.home() / ".local/state", "cynode-sba")
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    return tempfile.mkdtemp(dir=above)


def _events(stderr: bytes) -> list[dict]:
    events = []
    for line in stderr.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            events.append(event)
    return events


def _result_on(stderr: bytes) -> Result | None:
    """The result that the runner printed because it could not write it (exit status 3)."""
    for line in stderr.splitlines():
        if line.startswith(b'{"protocol_version"'):
            result: Result = json.loads(line)
            return result
    return None


def _run_until(stop: threading.Event, command: Sequence[str], environment: Mapping[str, str],
               timeout: float) -> tuple[int, bytes]:
    """Its status and what it wrote to stderr. It has a process group of its own: what kills ours leaves it the time to end
    its commands."""
    deadline = time.monotonic() + timeout
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=environment, process_group=0) as process:
        while not stop.is_set() and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                stderr = process.communicate(timeout=LOOK)[1]
                return process.returncode, stderr
        process.terminate()
        try:
            stderr = process.communicate(timeout=ENDING)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            stderr = process.communicate()[1]
    return process.returncode, stderr


def _run_to_its_end(command: Sequence[str], environment: Mapping[str, str], timeout: float) -> tuple[int, bytes]:
    """In a thread, where no KeyboardInterrupt comes between the start of the process and what ends it."""
    stop = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        try:
            ended = pool.submit(_run_until, stop, command, environment, timeout)
            while not ended.done():
                concurrent.futures.wait([ended], LOOK)
            return ended.result()
        except BaseException:
            stop.set()
            raise


def run(job: Job, workspace: str | os.PathLike, *, binary: str = "cynode-sba", image: str | None = None, runtime: str = "podman",
        runtime_options: Sequence[str] = (), options: Sequence[str] = (), environment: Mapping[str, str] | None = None,
        directory: str | os.PathLike | None = None) -> Outcome:
    """Runs a job to its end. A job that fails is an Outcome too; only where there is no result, RunnerError is raised.
    What interrupts this, such as Ctrl-C, cancels the job; so does the end of this process, but for a container's job.

    binary           the program, if no image is given
    image, runtime   runs the image with podman or docker instead; runtime_options go before the image's name
    options          of the program, such as ["--user", "1000"]
    environment      variables for the program, such as OLLAMA_BASE_URL, beside those of this process
    directory        where job and result are kept; by default a new one below $XDG_RUNTIME_DIR or, without it, $XDG_STATE_HOME
                     or ~/.local/state; the caller removes it
    """
    place = pathlib.Path(directory or _new_directory()).resolve()
    variables = dict(environment or {})
    (place / "job.json").write_text(json.dumps(job))
    (place / "result.json").unlink(missing_ok=True)
    command = _command(place, pathlib.Path(workspace).resolve(), binary, image, runtime, runtime_options, options, variables)
    environment = {"SBA_DIE_WITH_PARENT": "1", **os.environ, **variables}
    try:
        status, stderr = _run_to_its_end(command, environment, job["constraints"]["max_runtime_seconds"] + GRACE)
    except OSError as error:
        raise RunnerError(f"cannot start {command[0]}: {error.strerror}") from error
    try:
        result = json.loads((place / "result.json").read_bytes())
    except (OSError, ValueError):
        result = _result_on(stderr)
    if result is None:
        raise RunnerError(f"{command[0]} ended with status {status} and left no result: {stderr.decode(errors='replace')[-500:].strip()}")
    return Outcome(result, status, _events(stderr), place)
