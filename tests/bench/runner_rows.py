# SPDX-License-Identifier: Apache-2.0
"""The rows against another runner of the same jobs, such as the one in Go of CyNodeAI's public sources."""
import json
import shutil
import subprocess

from measure import MIB, duration, mib, verdict
from rows import file_steps, make_patch, plain_text, source_text

HEAD = ("| what | on | ours | theirs | times as fast | bound | "
        "| our processor time | theirs | ratio | our memory | theirs |\n" + "|---" * 12 + "|")


def jobs(bench):
    """(what, how many times as fast it shall be, runs, most output, the workspace at the start, steps)."""
    bare, holds, keep, count = bench.rival / "bare", bench.rival / "holds", 1 << 30, bench.size(200, 5)
    bare.mkdir()
    holds.mkdir()
    yield "empty job", 1.3, 101, keep, bare, []
    yield f"{count} `run_command` of `/bin/true`", 1, 11, keep, bare, [("run_command", {"argv": ["/bin/true"]})] * count
    for many in (count, 5 * count):
        yield f"{many:,} `write_file` and {many:,} `read_file` of 4 KB", 1.1, 21, keep, bare, file_steps(many)
    for what, files, hunks in (("1 file", 1, 1), ("100 files", 100, 1),
                               ("100 files, 10,000 hunks", 100, bench.size(100, 2))):
        old, new = bench.rival / f"old{files * hunks}", bench.rival / f"new{files * hunks}"
        diff = make_patch(bench, old, new, files, hunks)
        yield f"a patch of {what}", 1, 21, keep, old, [("apply_unified_diff", {"diff": diff})]
    (holds / "text").write_text(source_text(bench.size(100_000_000, 2 * MIB)), encoding="utf-8")
    cat = {"argv": ["cat", "text"], "max_output_bytes": keep - 1}
    yield "100 MB of output, kept", 1, 5, keep, holds, [("run_command", cat)]
    # Past the job's limit ours would fail: the step's own, a byte less, cuts for it, and the job's for the other.
    yield "100 MB of output, cut at 1 MiB", 1, 9, MIB, holds, [("run_command", {**cat, "max_output_bytes": MIB - 1})]
    text = plain_text(bench.size(64, 1) * MIB)
    (holds / "text").write_text(text, encoding="utf-8")
    yield "`read_file` of 64 MiB", 1, 5, keep, holds, [("read_file", {"path": "text"})]
    content = text[:len(text) - 4096]
    yield "`write_file` of 64 MiB", 1, 5, keep, bare, [("write_file", {"path": "text", "content": content})]


def against(bench, runner):
    """The lines of the table: both runners in turn, from the same workspace with nothing left to be written."""
    for what, bound, runs, limit, start, steps in jobs(bench):
        def restore():
            bench.set_aside(bench.workspace)
            shutil.copytree(start, bench.workspace)
            bench.give_tree(bench.workspace)
            subprocess.run(["sync", "-f", bench.workspace], check=True)

        def outcome(command):
            restore()
            bench.run(command)
            done = [(step["type"], step["status"]) for step in json.loads(command[4].read_bytes())["steps"] or ()]
            return done, {path: path.read_bytes() for path in bench.workspace.rglob("*") if path.is_file()}

        theirs = [runner, "--job", bench.job_directory / "job.json", "--result", bench.rival / "result.json",
                  "--workspace", bench.workspace]
        bench.write_job(*steps, max_output_bytes=limit, arguments="args", members={"execution_mode": "direct_steps"})
        bench.check(outcome(bench.command()) == outcome(theirs), f"{what}: the runners did not do the same")
        one, two = bench.compare(theirs, runs, before=restore)
        faster = two.seconds / one.seconds
        cells = [what, bench.file_system, duration(one.seconds), duration(two.seconds), f"{faster:.2f}",
                 f"≥ {bound:g} ×", verdict(bound, faster), duration(one.processor), duration(two.processor),
                 f"{two.processor / one.processor:.2f}", mib(one.kib), mib(two.kib)]
        yield f"| {' | '.join(cells)} |"
