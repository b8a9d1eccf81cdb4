# SPDX-License-Identifier: Apache-2.0
"""ctest ... | tests/skips.py LOG: passes on what ctest prints. Before its closing lines it tells what was skipped
by ctest's LastTest.log, a line for each test of ctest and each reason.
"""
import collections
import pathlib
import re
import sys

CLOSING = re.compile(r"\d+% tests passed,")
TEST = re.compile(r"\d+/\d+ Test: (\S+)$")
# unittest's, for one test or a class; a script's own word before it ends with 77.
REASONS = (re.compile(r""".* \.\.\. skipped (['"])(?P<why>.*)\1$"""), re.compile(r"(?:-- )?skipped[:,] (?P<why>.*)$"))


def skip(reason):
    """Ends a program of tests, none of which can run, in words that REASONS knows."""
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(77)


def skips(lines):
    """{(test, reason): how often}"""
    found, test = collections.Counter(), None
    for line in lines:
        line = line.rstrip("\n")
        if begun := TEST.match(line):
            test = begun[1]
        for pattern in REASONS:
            if test and (said := pattern.match(line)):
                found[test, said["why"]] += 1
    return found


def main():
    held = []
    for line in sys.stdin:
        if held or CLOSING.match(line):
            held.append(line)
        else:
            print(line, end="", flush=True)
    path = pathlib.Path(sys.argv[1])
    found = skips(path.read_text(encoding="utf-8", errors="replace").split("\n")) if path.exists() else {}
    if found:
        print("== Skipped, which is no failure:")
    for (test, why), count in sorted(found.items()):
        print(f"{test}: {count} {'test' if count == 1 else 'tests'}: {why}")
    print("\n" * bool(found) + "".join(held), end="")


if __name__ == "__main__":
    main()
