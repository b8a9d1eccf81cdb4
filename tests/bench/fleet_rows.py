# SPDX-License-Identifier: Apache-2.0
"""Many jobs, two at a time: what a job costs beside the command that it runs, and beside the start of an agent."""
import json
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import packages

from measure import mib

AT_ONCE = "2"
COMMAND = "true"


def write_jobs(bench, count):
    """So many jobs of a command, each in a directory of its own. Gives the file that lists the directories."""
    bench.write_job(("run_command", {"shell": COMMAND}))
    job = (bench.job_directory / "job.json").read_text(encoding="utf-8")
    listed = bench.rival / "jobs"
    places = [bench.job_directory / str(number) for number in range(count)]
    for place in places:
        (place / "workspace").mkdir(parents=True)
        (place / "job.json").write_text(job, encoding="utf-8")
    listed.write_text("".join(f"{place}\n" for place in places), encoding="utf-8")
    bench.give_tree(bench.job_directory)
    bench.give(listed)
    return listed, places


def in_turn(bench, listed, *command):
    return ["xargs", "-P", AT_ONCE, "-I{}", "-a", listed, *command]


def codex(bench):
    """Its program, where npm has it; else None. A quick run fetches nothing."""
    if bench.quick:
        return None
    try:
        modules = packages.node_modules("codex-0.171.0", "@openai/codex@0.171.0")
    except unittest.SkipTest:
        return None
    program = max((path for path in modules.rglob("codex") if path.is_file()), key=lambda path: path.stat().st_size)
    return shutil.copy(program, bench.tools / "codex")


def line(bench, what, count, command, others):
    seconds, kib, _ = bench.run(command)
    lines = []
    for name, theirs in others:
        their_seconds, their_kib, _ = bench.run(theirs)
        lines.append(f"| {what} | {count / seconds:.0f} jobs/s, {mib(kib)} | {name} | {count / their_seconds:.0f}/s, "
                     f"{mib(their_kib)} | {seconds / their_seconds:.2f} | | |")
    return lines


def fleet(bench):
    count = bench.size(1000, 10)
    listed, places = write_jobs(bench, count)
    ours = in_turn(bench, listed, bench.binary, "--job", "{}/job.json", "--result", "{}/result.json",
                   "--workspace", "{}/workspace", "--log-format", "json")
    others = [("`sh -c`", in_turn(bench, listed, "sh", "-c", COMMAND))]
    agent = codex(bench)
    if agent:
        others.append(("`codex exec --version`", in_turn(bench, listed, agent, "exec", "--version")))
    lines = line(bench, f"{count:,} jobs of a command, {AT_ONCE} at a time", count, ours, others)
    for place in places:
        result = json.loads((place / "result.json").read_bytes())
        bench.check(result["status"] == "success", result["failure_message"])
    return lines


ALL = {"fleet": fleet}
