# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: each makes its input, checks the outcome, compares, and gives its lines."""
import os
import pathlib
import random
import shutil
import subprocess

from measure import ENVIRONMENT, MIB, mib, row, row_alone

PATTERNS = ["EINVAL", "malloc|realloc|calloc", "^[A-Z_]+\\(", "unsigned +long +[a-z_]+;", "[A-Z][a-z]+Error",
            "\\bint\\b.*\\bchar\\b", "[0-9]{4}-[0-9]{2}-[0-9]{2}", "\\w+\\s*=\\s*NULL"]


def row_of_memory(what, kib, bound):
    return row_alone(what, mib(kib), kib / 1024, bound, "MiB")


def empty(bench):
    bench.write_job()
    _, result = bench.run_job()
    bench.check(result["steps"] == [], "an empty job has steps")
    ours, theirs = bench.compare(["/bin/true"], 300)
    lines = [row("empty job, start to result", ours, "`/bin/true`", theirs, 2.5),
             row_of_memory("the same, peak memory", ours.kib, 4)]
    if not shutil.which("strace") or not shutil.which("perf"):
        return lines
    calls, faults = bench.costs()
    return lines + [row_alone("the same, system calls", calls, calls, 200, "calls"),
                    row_alone("the same, page faults", faults, faults, 300, "faults")]


def write_commands(bench, many):
    """Writes a job of many commands; gives how many, and the result of a first run."""
    count = bench.size(many, 20)
    bench.write_job(*[("run_command", {"argv": ["/bin/true"]})] * count)
    _, result = bench.run_job()
    bench.check([step["exit_code"] for step in result["steps"]] == [0] * count, "a command did not exit with 0")
    return count, result


def commands(bench):
    count, _ = write_commands(bench, 200)
    ours, theirs = bench.compare(bench.floor("commands", count), 9)
    return [row(f"{count} `run_command` of `/bin/true`", ours, "the floor", theirs, 1.2)]


def confined(bench):
    """What it costs that the kernel confines commands."""
    count, result = write_commands(bench, 1000)
    if result["confinement"]["writes"] == "none":
        return [f"| {count:,} confined commands | not measured: this kernel has no Landlock | | | | ≤ 1.05 × | |"]
    ours, theirs = bench.compare(["env", "SBA_CONFINE=off", *bench.command()], 9)
    return [row(f"{count:,} confined commands", ours, "the same with `SBA_CONFINE=off`", theirs, 1.05)]


def file_steps(count):
    """So many writes of 4 KB, then as many reads."""
    writes = [("write_file", {"path": f"file{number}", "content": "x" * 4096}) for number in range(count)]
    return writes + [("read_file", {"path": write["path"]}) for _, write in writes]


def steps(bench):
    count = bench.size(200, 5)
    bench.write_job(*file_steps(count))
    _, result = bench.run_job()
    bench.check([step["result"]["size_bytes"] for step in result["steps"]] == [4096] * 2 * count, "another size")
    ours, theirs = bench.compare(bench.floor("steps", count), 15)
    return [row(f"{count} `write_file` and {count} `read_file` of 4 KB", ours, "the floor", theirs, 1.8)]


def memory(bench):
    count = bench.size(10000, 20)
    bench.write_job(*[("write_file", {"path": "small", "content": "small"})] * count)
    (_, kib, _), _ = bench.run_job()
    return [row_of_memory(f"{count:,} small `write_file`, peak memory", kib, 8)]


def drain(bench):
    """Output past a step's own limit is counted and thrown away."""
    total = bench.size(1024, 8) * MIB
    source = f"head -c {total} /dev/zero"
    bench.write_job(("run_command", {"shell": source, "max_output_bytes": 1000}))
    _, result = bench.run_job()
    step = result["steps"][0]["result"]
    bench.check((len(step["stdout"]), step["stdout_truncated"], step["exit_code"]) == (1000, True, 0), "another output")
    ours, theirs = bench.compare(["dash", "-c", f"{source} | cat >/dev/null"], 7)
    return [row("drain 1 GiB of output past a step's limit", ours, "`cat >/dev/null`", theirs, 1.3),
            row_of_memory("the same, peak memory", ours.kib, 8)]


def source_text(bytes_):
    """So many bytes of lines such as a compiler prints."""
    chance = random.Random(1)
    line = 'src/file%d.c:%d: warning: unused "name"\t[-W%d]\n'
    block = "".join(line % tuple(chance.randrange(most) for most in (99, 999, 9)) for _ in range(20000))
    return (block * (bytes_ // len(block) + 1))[:bytes_]


def plain_text(bytes_):
    """The same, but nothing of it needs an escape in JSON."""
    return source_text(bytes_).replace("\t", " ").replace('"', "'").replace("\n", ".")


def capture(bench):
    text = source_text(bench.size(128, 2) * MIB)
    path = bench.workspace / "text"
    path.write_text(text, encoding="utf-8")
    bench.write_job(("run_command", {"argv": ["cat", "text"]}), max_output_bytes=1 << 30)
    _, result = bench.run_job()
    bench.check(result["steps"][0]["result"]["stdout"] == text, "stdout is not what was printed")
    del result, text
    ours, theirs = bench.compare(["jq", "-Rs", ".", path], 5, stdout=bench.rival / "out")
    return [row("128 MiB of stdout into the result", ours, "`jq -Rs .`", theirs, 0.5)]


def count_entries(entry):
    return 1 + sum(count_entries(child) for child in entry.get("children", ()))


def plant(bench):
    """Fills the workspace with directories of 99 files and a link each; gives how many."""
    directories = bench.size(2000, 20)
    for number in range(directories):
        directory = bench.workspace / f"group{number // 50}" / f"directory{number}"
        directory.mkdir(parents=True)
        for file in range(99):
            (directory / f"file{file}.txt").touch()
        (directory / "link").symlink_to("file1.txt")
    return directories


def find(bench):
    return ["find", bench.workspace, "-printf", "%p %s %m %y %l\\n"]


def tree(bench):
    directories = plant(bench)
    bench.write_job(("list_tree", {"max_entries": 1 << 30}), max_output_bytes=1 << 30)
    _, result = bench.run_job()
    listed = result["steps"][0]["result"]
    wanted = 1 + sum(len(names) + len(files) for _, names, files in os.walk(bench.workspace))
    bench.check(count_entries(listed) == wanted, f"{count_entries(listed)} entries listed of {wanted}")
    del result, listed
    ours, theirs = bench.compare(find(bench), 5, stdout=bench.rival / "out")
    return [row(f"`list_tree` of {directories * 100:,} files", ours, "`find -printf`", theirs, 3)]


def changes(bench):
    """report_changes where 100 of many files change: what both walks take, the job's own time aside."""
    directories = plant(bench)
    bench.give_tree(bench.workspace)
    change = ("run_command", {"shell": "for i in $(seq 100); do echo x >>group0/directory$((i%20))/file$i.txt; done"})
    bench.write_job(change)
    plain, _ = bench.run_job()
    bench.write_job(change, report_changes=True)
    _, result = bench.run_job()
    counts = result["workspace_changes"]["counts"]
    bench.check(counts["created"] + counts["modified"] == 100, "not 100 files changed")
    ours, theirs = bench.compare(find(bench), 5, stdout=bench.rival / "out")
    ours.seconds -= plain[0]
    return [row(f"`report_changes` over {directories * 100:,} files, both walks", ours, "`find -printf`", theirs, 2),
            row_of_memory("the same, peak memory", ours.kib, 64)]


def difference(old, new):
    diff = subprocess.run(["git", "diff", "--no-index", "--no-prefix", old.name, new.name], cwd=old.parent,
                          capture_output=True, env=ENVIRONMENT).stdout.decode()
    return diff.replace(f" {old.name}/", " a/").replace(f" {new.name}/", " b/")


def make_patch(bench, old, new, files, hunks=100):
    """Fills two directories with files that differ in hunks; gives the patch between them."""
    chance = random.Random(2)
    for directory in (old, new):
        directory.mkdir()
    for file in range(files):
        lines = [f"    value_{chance.randrange(10 ** 6)} = call({number}); // {file}\n" for number in range(hunks * 20)]
        (old / f"file{file}.c").write_text("".join(lines), encoding="utf-8")
        for hunk in range(hunks):
            lines[hunk * 20 + 10] = f"    changed({hunk});\n    added({hunk});\n"
        (new / f"file{file}.c").write_text("".join(lines), encoding="utf-8")
    diff = difference(old, new)
    bench.check(diff.count("\n@@ ") == files * hunks, "the patch has not as many hunks as meant")
    return diff


def patch(bench):
    old, new = bench.rival / "old", bench.rival / "new"
    diff = make_patch(bench, old, new, bench.size(100, 5))
    (bench.rival / "patch").write_text(diff, encoding="utf-8")

    def restore():
        for directory in (bench.workspace, bench.rival / "tree"):
            shutil.rmtree(directory, ignore_errors=True)
            shutil.copytree(old, directory)
            bench.give_tree(directory)

    def same(directory):
        return subprocess.run(["diff", "-r", directory, new], stdout=subprocess.DEVNULL).returncode == 0

    bench.write_job(("apply_unified_diff", {"diff": diff}))
    restore()
    bench.run_job()
    bench.check(same(bench.workspace), "the patched files are not as they should be")
    git = ["git", "apply", "../patch"]
    bench.run(git, cwd=bench.rival / "tree")
    bench.check(same(bench.rival / "tree"), "git apply did not apply the patch")
    ours, theirs = bench.compare(git, 9, before=restore, cwd=bench.rival / "tree")
    return [row("`apply_unified_diff`, 100 files, 10,000 hunks", ours, "`git apply`", theirs, 1)]


def patch_of_repeated_lines(bench):
    """A hunk whose lines are nearly everywhere in the file: searches that compare line by line are quadratic here."""
    count, half = bench.size(100_000, 1000), bench.size(2001, 20)
    lines = ["alpha\n", "beta\n"] * (count // 2)
    place = count * 4 // 10 * 2
    lines.insert(place, "alpha\n")
    hunk = lines[place - half:place + half + 1]
    body = [*(" " + line for line in hunk[:half]), "-" + hunk[half], "+new\n",
            *(" " + line for line in hunk[half + 1:])]
    diff = f"--- a/text\n+++ b/text\n@@ -1,{len(hunk)} +1,{len(hunk)} @@\n" + "".join(body)
    wanted = [*lines[:place], "new\n", *lines[place + 1:]]
    (bench.rival / "repeated").write_text(diff, encoding="utf-8")

    def restore():
        for directory in (bench.workspace, bench.rival):
            (directory / "text").write_text("".join(lines), encoding="utf-8")
        bench.give_tree(bench.workspace)

    bench.write_job(("apply_unified_diff", {"diff": diff}))
    restore()
    bench.run_job()
    gnu = ["patch", "-s", "-p1", "-i", "repeated"]
    bench.run(gnu, cwd=bench.rival)
    for directory in (bench.workspace, bench.rival):
        bench.check((directory / "text").read_text(encoding="utf-8") == "".join(wanted), "the hunk is not at its place")
    ours, theirs = bench.compare(gnu, 9, before=restore, cwd=bench.rival)
    return [row(f"a hunk of {len(hunk):,} lines in {len(lines):,} of two kinds", ours, "`patch`", theirs, 1)]


def copy_source(top, wanted):
    """Copies what any Debian machine has of source, under numbered directories, until it is so many bytes."""
    done, round_ = 0, 0
    while done < wanted:
        round_ += 1
        for origin in ("/usr/include", "/usr/share/perl", "/usr/lib/python3", "/usr/lib/python3.11"):
            for directory, _, files in os.walk(origin):
                for name in files:
                    path = pathlib.Path(directory, name)
                    if done >= wanted or path.is_symlink() or path.suffix in (".pyc", ".so", ".a", ".o"):
                        continue
                    target = pathlib.Path(top, str(round_) + str(path))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
                    done += target.stat().st_size


def search_row(bench, pattern):
    grep = ["grep", "-rnIE", "-e", pattern, "."]
    bench.write_job(("search_files", {"pattern": pattern, "max_matches": 1 << 30}), max_output_bytes=1 << 30)
    _, result = bench.run_job()
    found = {f"{match['path']}:{match['line']}" for match in result["steps"][0]["result"]["matches"]}
    out = subprocess.run(grep, cwd=bench.workspace, env=ENVIRONMENT, capture_output=True).stdout
    wanted = {":".join(line.decode(errors="replace")[2:].split(":", 2)[:2]) for line in out.split(b"\n") if line}
    bench.check(found == wanted, f"{pattern}: grep and search_files differ at {sorted(found ^ wanted)[:3]}")
    ours, theirs = bench.compare(grep, 5, stdout=bench.rival / "out", cwd=bench.workspace)
    what = f"`search_files` over 200 MB of source, `{pattern}`".replace("|", "\\|")
    return ours.seconds / theirs.seconds, row(what, ours, "`grep -rnE`", theirs, 1.5)


def search(bench):
    copy_source(bench.workspace, bench.size(200_000_000, 2_000_000))
    bench.give_tree(bench.workspace)
    lines = sorted((search_row(bench, pattern) for pattern in PATTERNS), reverse=True)
    return [line for _, line in lines]


def files(bench):
    """write_file of as much as fits into a job, and read_file of 64 MiB."""
    text = plain_text(bench.size(64, 1) * MIB)
    content = text[:len(text) - 4096]
    bench.write_job(("write_file", {"path": "written", "content": content}))
    bench.run_job()
    bench.check((bench.workspace / "written").read_text(encoding="utf-8") == content, "the file has other content")
    ours, theirs = bench.compare(bench.floor("write"), 9)
    lines = [row("`write_file` of 64 MiB", ours, "the floor", theirs, 1),
             row_of_memory("the same, peak memory", ours.kib, 2.2 * 64)]

    for place in (bench.workspace, bench.rival / "workspace"):
        (place / "big").write_text(text, encoding="utf-8")
    bench.write_job(("read_file", {"path": "big"}), max_output_bytes=1 << 30)
    _, result = bench.run_job()
    bench.check(result["steps"][0]["result"]["content"] == text, "what was read is not the file")
    ours, theirs = bench.compare(bench.floor("read"), 9)
    return lines + [row("`read_file` of 64 MiB", ours, "the floor", theirs, 1),
                    row_of_memory("the same, peak memory", ours.kib, 12)]


ALL = {"empty": empty, "commands": commands, "confined": confined, "steps": steps, "memory": memory, "drain": drain,
       "capture": capture, "tree": tree, "changes": changes, "patch": patch, "repeated": patch_of_repeated_lines,
       "search": search, "files": files}

# Measured in the build directory too, which is on a disk.
ON_DISK = ("commands", "steps")
