# SPDX-License-Identifier: Apache-2.0
"""The rows against another runner of the same jobs, such as the one in Go that nodes have: what both can do, each in its own way."""
from measure import ENVIRONMENT, MIB, duration, mib
from rows import source_text


def jobs(bench):
    """(what, steps, how often it is measured). The workspace changes from one to the next."""
    small = [("write_file", {"path": f"file{number}", "content": "x" * 4096}) for number in range(bench.size(200, 5))]
    reads = [("read_file", {"path": step["path"]}) for _, step in small]
    text = source_text(bench.size(32, 1) * MIB)
    yield "empty job", [], 101
    yield f"{len(small)} `run_command` of `/bin/true`", [("run_command", {"argv": ["/bin/true"]})] * len(small), 11
    yield f"{len(small)} `write_file` of 4 KB", small, 21
    yield f"{len(reads)} `read_file` of 4 KB", reads, 21
    (bench.workspace / "big").write_text(text, encoding="utf-8")
    yield "`read_file` of 32 MiB", [("read_file", {"path": "big"})], 5
    yield "`write_file` of 32 MiB", [("write_file", {"path": "big", "content": text})], 5
    yield "`run_command` that prints 32 MiB", [("run_command", {"argv": ["cat", "big"]})], 5
    directories = bench.size(200, 2)
    for number in range(directories):
        directory = bench.workspace / f"group{number // 20}" / f"directory{number}"
        directory.mkdir(parents=True)
        for file in range(100):
            (directory / f"file{file}.c").write_text(text[file * 1000:file * 1000 + 1500], encoding="utf-8")
    yield f"`list_tree` of {directories * 100:,} files", [("list_tree", {})], 7
    for found, pattern in (("many matches", "unused .name.\\s+\\[-W7\\]"), ("no match", "used .name.\\s+\\[-X\\d\\]")):
        # The other runner knows no limit of matches, and passes over the argument.
        search = {"pattern": pattern, "max_matches": 1 << 30}
        yield f"`search_files` in {directories * 100:,} files, {found}", [("search_files", search)], 5


def against(bench, runner):
    """The lines of the table: this program and the other runner, in turn, each job."""
    ENVIRONMENT["SBA_DIRECT_STEPS"] = "1"  # without it an empty job is an agent's for the Go runner
    command = [runner, "--job", bench.job_directory / "job.json", "--result", bench.rival / "result.json", "--workspace", bench.workspace]
    for what, steps, count in jobs(bench):
        bench.give_tree(bench.workspace)
        bench.write_job(*steps, max_output_bytes=1 << 30, arguments="args")
        _, result = bench.run_job()
        bench.check(not any(step["result"].get("truncated") for step in result["steps"]), f"{what}: something is left out")
        ours, theirs = bench.compare(command, count)
        yield (f"| {what} | {bench.file_system} | {duration(ours.seconds)} | {duration(theirs.seconds)} | {ours.seconds / theirs.seconds:.2f} "
               f"| {mib(ours.kib)} | {mib(theirs.kib)} |")
