# SPDX-License-Identifier: Apache-2.0
"""report.py BUILD: which lines of src/ and of lua/sba/ the tests reached in a coverage build, by file, the worst first.

C by gcov; Lua by what lines.c noted, of the lines that luac says can run. What a process did that was killed, or that
left by _exit, gcov does not know.
"""
import json
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
SHOWN = 12  # ranges of lines of a file


def c_lines(build):
    """{path: {line: was it reached}} of src/."""
    files = {}
    data = [str(path) for path in build.rglob("*.gcda") if "/src/" in str(path)]
    done = subprocess.run(["gcov", "--json-format", "--stdout", *data], cwd=build, capture_output=True, text=True,
                          check=True)
    for unit in filter(None, done.stdout.splitlines()):
        for file in json.loads(unit)["files"]:
            path = pathlib.Path(file["file"])
            if (TOP / "src") in path.parents:
                lines = files.setdefault(path.relative_to(TOP).as_posix(), {})
                for line in file["lines"]:
                    lines[line["line_number"]] = lines.get(line["line_number"], False) or line["count"] > 0
    return files


def lua_lines(build):
    reached = set((build / "lines").read_text().split())
    files = {}
    for path in (TOP / "lua/sba").rglob("*.lua"):
        name = path.relative_to(TOP).as_posix()
        listing = subprocess.run(["luac5.4", "-l", "-p", path], capture_output=True, text=True, check=True).stdout
        # The instruction that every file begins with stands in no line.
        can_run = {int(number) for number in re.findall(r"^\t\d+\t\[(\d+)\]\t(?!VARARGPREP)", listing, re.M)}
        files[name] = {number: f"{name}:{number}" in reached for number in can_run}
    return files


def ranges(numbers):
    """1, 2, 3, 7 as "1-3 7"."""
    parts = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in parts]
    return " ".join(texts[:SHOWN]) + (" ..." if len(texts) > SHOWN else "")


def report(what, files):
    missed = {name: [number for number, is_reached in lines.items() if not is_reached] for name, lines in files.items()}
    for name in sorted(missed, key=lambda name: len(missed[name])):
        if missed[name]:
            print(f"{len(missed[name]):5} of {len(files[name]):4} lines not reached: {name}: {ranges(missed[name])}")
    total = sum(map(len, files.values()))
    reached = total - sum(map(len, missed.values()))
    print(f"{what}: {reached} of {total} lines reached, {100 * reached / max(total, 1):.1f} %\n")


if __name__ == "__main__":
    report("C", c_lines(pathlib.Path(sys.argv[1]).resolve()))
    report("Lua", lua_lines(pathlib.Path(sys.argv[1]).resolve()))
