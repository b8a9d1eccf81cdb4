# SPDX-License-Identifier: Apache-2.0
"""The summary of many results."""
import csv
import io
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

COMMAND = [sys.executable, "-m", "cynode_sba.collect"]


def result(job_id, code=None, **more):
    return {"protocol_version": "1.0", "job_id": job_id, "task_id": "t", "status": "failure" if code else "success", "duration_ms": 1500,
            "steps": [], "failure_code": code, **({"failure_message": "why | <b>\n"} if code else {}), **more}


def put(directory, value):
    directory.mkdir(parents=True)
    (directory / "result.json").write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.fixture
def jobs(tmp_path):
    inference = {"model": "m", "requests": 2, "prompt_tokens": 30, "completion_tokens": 4}
    acceptance = [{"criterion": "a", "met": True}, {"criterion": "b", "met": None}]
    put(tmp_path / "a", result("fine", inference=inference, acceptance=acceptance))
    put(tmp_path / "b", result("broken", "step_failed"))
    put(tmp_path / "c", result("away", "inference_unavailable", retryable=True))
    put(tmp_path / "d", result("bug", "internal_error"))
    put(tmp_path / "e", '{"job_id": ')
    (tmp_path / "f").mkdir()
    (tmp_path / "f/job.json").write_text("{}")
    return tmp_path


def collect(*arguments, status=1):
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_each_job_has_a_row_and_somebody_to_blame(jobs):
    document = json.loads(collect("--format", "json", jobs))
    assert [(pathlib.Path(row["path"]).parent.name, row["failure_code"], row["blame"]) for row in document["jobs"]] == [
        ("a", None, ""), ("b", "step_failed", "job"), ("c", "inference_unavailable", "outside"), ("d", "internal_error", "runner"),
        ("e", "unreadable", "runner"), ("f", "no_result", "outside")]
    fine = document["jobs"][0]
    assert (fine["met"], fine["criteria"], fine["requests"], fine["tokens"], fine["seconds"]) == (1, 2, 2, 34, 1.5)
    summary = document["summary"]
    assert (summary["jobs"], summary["succeeded"], summary["tokens"], summary["seconds"]) == (6, 1, 34, 6.0)
    assert summary["blame"] == {"job": 1, "outside": 2, "runner": 2}


def test_what_a_worker_reported_is_a_claim(tmp_path):
    claim = {"prompt_tokens": 5, "source": "worker", "cost_usd": 0.0125}
    put(tmp_path / "a", result("claims", inference=claim))
    measured = {"model": "m", "requests": 1, "prompt_tokens": 1, "completion_tokens": 1}
    put(tmp_path / "b", result("measured", inference=measured))
    document = json.loads(collect("--format", "json", tmp_path, status=0))
    assert [(row["tokens"], row["requests"], row["cost_usd"], row["claimed"]) for row in document["jobs"]] == [
        (5, 0, 0.0125, True), (2, 1, 0, False)]
    assert document["summary"]["cost_usd"] == 0.0125
    table = collect(tmp_path, status=0)
    assert "7 tokens, 0.0125 USD in all" in table and " 0.0125 " in table


def test_the_other_forms_say_the_same(jobs):
    table = collect(jobs)
    assert table.splitlines()[0].split()[:3] == ["path", "job_id", "status"]
    assert "1 of 6 jobs succeeded; failed: " in table and "(by job 1, outside 2, runner 2)" in table
    assert [row["job_id"] for row in csv.DictReader(io.StringIO(collect("--format", "csv", jobs)))] == ["fine", "broken", "away", "bug", "", ""]
    assert "`why \\| <b> `" in collect("--format", "markdown", jobs)
    suite = ElementTree.fromstring(collect("--format", "junit", jobs))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "1", "4")
    assert [[part.tag for part in case] for case in suite] == [[], ["failure"], ["error"], ["error"], ["error"], ["error"]]


def test_the_exit_status_says_whether_all_succeeded(jobs):
    collect(jobs / "a", status=0)
    collect(jobs / "a/result.json", status=0)
    (jobs / "empty").mkdir()
    collect(jobs / "empty", status=2)
    collect(jobs / "none/result.json", status=1)


def test_a_large_result_is_not_read_whole(tmp_path):
    step = {"index": 0, "output": 'a "quoted" ] } text, '}
    steps = ",".join([json.dumps(step)] * 1000)
    text = json.dumps(result("large", "timeout", acceptance=[{"criterion": ",", "met": False}]))
    (tmp_path / "large").mkdir()
    with open(tmp_path / "large/result.json", "w", encoding="utf-8") as file:
        before, after = text.split('"steps": []')
        file.write(before + '"steps": [')
        for _ in range(250):
            file.write(steps + ",")
        file.write(steps + "]" + after)
    (row,) = json.loads(collect("--format", "json", tmp_path))["jobs"]
    assert (row["job_id"], row["failure_code"], row["criteria"], row["seconds"]) == ("large", "timeout", 1, 1.5)
    assert (tmp_path / "large/result.json").stat().st_size > 8 << 20


def test_ten_thousand_results(tmp_path):
    for number in range(10000):
        put(tmp_path / str(number // 100) / str(number), result(str(number), inference={"model": "m", "prompt_tokens": 1}))
    assert "10000 of 10000 jobs succeeded; 15000.0 s and 10000 tokens in all" in collect(tmp_path, status=0)
