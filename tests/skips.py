# SPDX-License-Identifier: Apache-2.0
"""tests/skips.py LOG: what ctest's LastTest.log says was skipped, a line for each test of ctest and each reason."""
import collections
import re
import sys

TEST = re.compile(r"\d+/\d+ Test: (\S+)$")
# unittest's, for one test or a class; a script's own word before it ends with 77.
REASONS = (re.compile(r""".* \.\.\. skipped (['"])(?P<why>.*)\1$"""), re.compile(r"(?:-- )?skipped[:,] (?P<why>.*)$"))


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
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        found = skips(log)
    if found:
        print("== Skipped, which is no failure:")
    for (test, why), count in sorted(found.items()):
        print(f"{test}: {count} {'test' if count == 1 else 'tests'}: {why}")


if __name__ == "__main__":
    main()
