# SPDX-License-Identifier: Apache-2.0
"""With the binary that SBA_BINARY names."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import cynode_sba
import pytest

BINARY = os.environ["SBA_BINARY"]
OPTIONS = ["--user", "54321"] if os.geteuid() == 0 else []


@pytest.fixture
def place(tmp_path):
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and path != pathlib.Path("/"):
            path.chmod(path.stat().st_mode | 0o011)
    for name in ("job", "workspace"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    return tmp_path


def run(place, *steps, **constraints) -> cynode_sba.Outcome:
    job: cynode_sba.Job = {
        "protocol_version": "1.0", "job_id": "j", "task_id": "t",
        "constraints": {"max_runtime_seconds": 30, "max_output_bytes": 1000, **constraints}, "steps": list(steps)}
    return cynode_sba.run(job, place / "workspace", binary=BINARY, options=OPTIONS, directory=place / "job",
                          environment={"SBA_GREETING": "hello"})


def shell(script):
    return {"type": "run_command", "arguments": {"shell": script}}


def test_a_result(place):
    outcome = run(place, shell('echo $SBA_GREETING; echo kept >"$CYNODE_ARTIFACTS_DIR/a"'))
    assert outcome.succeeded and outcome.exit_code == 0
    assert outcome.result["steps"][0]["output"] == "hello\n"
    assert outcome.artifact("a") == b"kept\n"
    assert outcome.log[0]["event"] == "job.accepted"
    with pytest.raises(KeyError):
        outcome.artifact("../job.json")


def test_the_default_directory(place, monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    with pytest.raises(cynode_sba.RunnerError):
        cynode_sba.run({"constraints": {"max_runtime_seconds": 1}}, place, binary="/none")
    assert len(list((place / "state/cynode-sba").glob("*/job.json"))) == 1


def test_a_failure_is_a_result(place):
    outcome = run(place, shell("exit 3"))
    assert (outcome.succeeded, outcome.exit_code, outcome.result["failure_code"]) == (False, 1, "step_failed")
    assert run(place, {"type": "none"}).result["failure_code"] == "schema_validation"
    assert run(place, shell("sleep 100"), max_runtime_seconds=1).exit_code == 124


def test_a_result_that_cannot_be_written(place):
    (place / "job").chmod(0o555)
    outcome = run(place, shell("true")) if os.geteuid() == 0 else pytest.skip("wants root")
    assert (outcome.exit_code, outcome.result["failure_code"]) == (3, "environment_invalid")


def test_no_result(place):
    with pytest.raises(cynode_sba.RunnerError, match="cannot start /none/cynode-sba"):
        cynode_sba.run({"constraints": {"max_runtime_seconds": 1}}, place, binary="/none/cynode-sba", directory=place / "job")
    with pytest.raises(cynode_sba.RunnerError, match="ended with status 1 and left no result"):
        cynode_sba.run({"constraints": {"max_runtime_seconds": 1}}, place, binary="/bin/false", directory=place / "job")


def test_reports_are_waited_for(place, monkeypatch):
    """A status server that never answers takes 3 s at the start and 30 s at the end. Nothing is waited for here."""
    seen = []

    def ended(_command, _environment, timeout):
        seen.append(timeout)
        (place / "job" / "result.json").write_text("{}")
        return 0, b""
    monkeypatch.setattr(cynode_sba, "_run_to_its_end", ended)
    run(place, max_runtime_seconds=7)
    assert seen[0] > 7 + 3 + 5 + 35


# The caller may have ignored SIGINT. A process of the job leaves its session.
PROGRAM = """
import pathlib, signal, sys
import cynode_sba
signal.signal(signal.SIGINT, signal.default_int_handler)
place, binary, *options = sys.argv[1:]
cynode_sba.run({"protocol_version": "1.0", "job_id": "j", "task_id": "t",
                "constraints": {"max_runtime_seconds": 600, "max_output_bytes": 1000},
                "steps": [{"type": "run_command", "arguments": {"shell": "setsid sleep 3600 & touch begun; sleep 3600"}}]},
               pathlib.Path(place, "workspace"), binary=binary, options=options, directory=pathlib.Path(place, "job"))
"""


def processes_in(directory):
    found = []
    for link in pathlib.Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [link.parent.name] if os.readlink(link) == str(directory) else []
    return found


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_program_is_the_jobs(place, number):
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, place, BINARY, *OPTIONS])
    wait_for((place / "workspace/begun").exists)
    program.send_signal(number)
    program.wait(120)
    wait_for(lambda: not processes_in(place / "workspace"))
    wait_for(lambda: json.loads((place / "job/result.json").read_text())["failure_code"] == "cancelled")


def test_the_command_of_a_container(place):
    """A runtime that prints how it was called."""
    runtime = place / "runtime"
    runtime.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$(dirname "$0")/called"\n')
    runtime.chmod(0o755)
    with pytest.raises(cynode_sba.RunnerError):
        cynode_sba.run({"constraints": {"max_runtime_seconds": 1}}, place / "workspace", image="cynode-sba:0.1.0", runtime=str(runtime),
                       runtime_options=["--network=none"], environment={"OLLAMA_BASE_URL": "x"}, directory=place / "job")
    assert (place / "called").read_text().split() == [
        "run", "--rm", "--env=OLLAMA_BASE_URL", f"--volume={place}/job:/job", f"--volume={place}/workspace:/workspace",
        "--workdir=/workspace", "--network=none", "cynode-sba:0.1.0", "--log-format", "json"]
