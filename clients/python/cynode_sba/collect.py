# SPDX-License-Identifier: Apache-2.0
"""Sums up the results of many jobs.

    python3 -m cynode_sba.collect [--format table|csv|json|markdown|junit] DIR...

Prints a row for each result.json below the directories, and for each job.json without one, then a summary: how many succeeded, whose
fault the failures are, and the tokens and seconds of all. Exits 0 if all jobs succeeded, 1 if one did not, 2 if there is none.
"""
from __future__ import annotations

import argparse
import collections
import csv
import json
import mmap
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

LARGE = 8 << 20  # bytes; of a larger result only the members that a row needs are read
LARGEST_MEMBER = 1 << 20  # bytes of such a member
LONGEST = 200  # characters of a message in a table
COLUMNS = ("path", "job_id", "status", "failure_code", "blame", "met", "criteria", "seconds", "requests", "tokens",
           "cost_usd", "claimed", "message")  # claimed: tokens and cost are what a worker reported, unchecked

# Whose fault a failure is. What is not named here is the job's: its steps, its model, its limits, its criteria.
OUTSIDE = {"inference_unavailable", "ext_net_required", "environment_invalid", "runs_as_root", "cancelled", "interrupted", "no_result"}
RUNNER = {"internal_error", "unreadable"}

Row = dict[str, Any]

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},]')


def _members(text: mmap.mmap) -> Row:
    """The members of a large object that are small, found without reading the others into memory."""
    found: Row = {}
    depth, name, start = 0, None, 0
    for match in _TOKEN.finditer(text):
        token = match[0][:1]
        if token in b"[{":
            depth += 1
        elif depth == 1 and token == b'"' and name is None:
            name, start = match[0], match.end()
        elif token in b"]}":
            depth -= 1
        if name is not None and (depth == 1 and token == b"," or depth == 0):
            if match.start() - start <= LARGEST_MEMBER:
                found[json.loads(name)] = json.loads(text[start:match.start()].strip().removeprefix(b":"))
            name = None
    return found


def _read(path: pathlib.Path) -> Row:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size <= LARGE:
            result = json.loads(file.read())
        else:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                result = _members(text)
    if not isinstance(result, dict) or not isinstance(result.get("job_id"), str) or "status" not in result:
        raise ValueError("it is not a result")
    return result


def _blame(code: str | None, result: Row) -> str:
    if code is None:
        return ""
    if code in RUNNER:
        return "runner"
    return "outside" if code in OUTSIDE or result.get("retryable") else "job"


def row_of(path: pathlib.Path) -> Row:
    """The row of a result's file, which may be missing or broken."""
    result: Row = {}
    code: str | None
    try:
        result = _read(path)
        code, message = result.get("failure_code"), result.get("failure_message") or ""
    except FileNotFoundError:
        code, message = "no_result", "there is a job and no result: it has not run, or its container was lost"
    except (OSError, ValueError) as error:
        code, message = "unreadable", str(error)
    inference, acceptance = result.get("inference") or {}, result.get("acceptance") or []
    return {
        "path": str(path), "job_id": result.get("job_id", ""), "status": result.get("status", "failure"), "failure_code": code,
        "blame": _blame(code, result), "met": sum(item.get("met") is True for item in acceptance), "criteria": len(acceptance),
        "seconds": result.get("duration_ms", 0) / 1000, "requests": inference.get("requests", 0),
        "tokens": inference.get("prompt_tokens", 0) + inference.get("completion_tokens", 0),
        "cost_usd": inference.get("cost_usd", 0), "claimed": inference.get("source") == "worker", "message": message,
    }


def results_below(directories: Iterable[str | os.PathLike[str]]) -> Iterator[pathlib.Path]:
    """Paths in the order of their names; also of results that are missing beside a job."""
    for directory in directories:
        if not os.path.isdir(directory):
            yield pathlib.Path(directory)
            continue
        for place, inner, files in os.walk(directory):
            inner.sort()
            if "result.json" in files or "job.json" in files:
                yield pathlib.Path(place, "result.json")


class Summary:
    """Of the rows that passed through it."""

    def __init__(self) -> None:
        self.jobs = self.succeeded = self.tokens = 0
        self.seconds = self.cost = 0.0
        self.blame: collections.Counter[str] = collections.Counter()
        self.codes: collections.Counter[str] = collections.Counter()

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.jobs += 1
            self.succeeded += row["failure_code"] is None
            self.tokens += row["tokens"]
            self.seconds += row["seconds"]
            self.cost += row["cost_usd"]
            if row["failure_code"] is not None:
                self.blame[row["blame"]] += 1
                self.codes[row["failure_code"]] += 1
            yield row

    def as_row(self) -> Row:
        return {"jobs": self.jobs, "succeeded": self.succeeded, "failed": dict(self.codes), "blame": dict(self.blame),
                "seconds": round(self.seconds, 3), "tokens": self.tokens, "cost_usd": round(self.cost, 6)}

    def line(self) -> str:
        failures = ", ".join(f"{count} {code}" for code, count in self.codes.most_common())
        blame = ", ".join(f"{who} {count}" for who, count in sorted(self.blame.items()))
        why = f"; failed: {failures} (by {blame})" if failures else ""
        cost = f", {self.cost:.4g} USD" if self.cost else ""
        return f"{self.succeeded} of {self.jobs} jobs succeeded{why}; {self.seconds:.1f} s and {self.tokens} tokens{cost} in all"


def _cell(value: Any) -> str:
    """One line of printable characters."""
    text = "" if value is None else str(round(value, 1 if value >= 10 else 4)) if isinstance(value, float) else str(value)
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text.replace("\n", " "))
    return text if len(text) <= LONGEST else text[:LONGEST - 3] + "..."


def _write_table(rows: Iterable[Row], summary: Summary, out: TextIO) -> None:
    lines = [COLUMNS, *(tuple(_cell(row[name]) for name in COLUMNS) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    for line in lines:
        out.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n")
    out.write("\n" + summary.line() + "\n")


def _write_csv(rows: Iterable[Row], _summary: Summary, out: TextIO) -> None:
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _write_json(rows: Iterable[Row], summary: Summary, out: TextIO) -> None:
    out.write('{"jobs":[')
    for i, row in enumerate(rows):
        out.write((",\n" if i else "\n") + json.dumps(row, ensure_ascii=False))
    out.write('\n],"summary":' + json.dumps(summary.as_row()) + "}\n")


def _write_markdown(rows: Iterable[Row], summary: Summary, out: TextIO) -> None:
    """What jobs wrote stands in code, where no mark, link or HTML of it acts."""
    def code(value: Any) -> str:
        text = _cell(value).replace("|", "\\|").replace("`", "'")
        return f"`{text}`" if text.strip() else ""
    out.write("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n")
    for row in rows:
        out.write("| " + " | ".join(code(row[name]) for name in COLUMNS) + " |\n")
    out.write(f"\n{summary.line()}\n")


def _write_junit(rows: Iterable[Row], summary: Summary, out: TextIO) -> None:
    def clean(value: Any) -> str:
        return re.sub("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", str(value))
    suite = ElementTree.Element("testsuite", name="cynode-sba")
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", classname="jobs", name=clean(row["job_id"] or row["path"]),
                                      time=f"{row['seconds']:.3f}")
        if row["failure_code"] is not None:
            kind = "failure" if row["blame"] == "job" else "error"
            ElementTree.SubElement(case, kind, type=row["failure_code"], message=clean(row["message"])).text = row["path"]
    failures = summary.blame["job"]
    suite.attrib.update(tests=str(summary.jobs), failures=str(failures), errors=str(summary.jobs - summary.succeeded - failures))
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n")


FORMATS = {"table": _write_table, "csv": _write_csv, "json": _write_json, "markdown": _write_markdown, "junit": _write_junit}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python3 -m cynode_sba.collect", description="Sums up the results of many jobs.")
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument("directories", nargs="+", metavar="DIR", help="searched for result.json; or a result's file")
    options = parser.parse_args()
    summary = Summary()
    FORMATS[options.format](summary.watch(map(row_of, results_below(options.directories))), summary, sys.stdout)
    if options.format == "csv":
        print(summary.line(), file=sys.stderr)
    if summary.jobs == 0:
        print("there is no result.json and no job.json below " + ", ".join(options.directories), file=sys.stderr)
        return 2
    return 0 if summary.succeeded == summary.jobs else 1


if __name__ == "__main__":
    sys.exit(main())
