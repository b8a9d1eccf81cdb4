# SPDX-License-Identifier: Apache-2.0
"""Runs jobs and their rivals in turn, and times them."""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # where the rows find the package servers

MIB = 1 << 20
UID = 54321 if os.geteuid() == 0 else None
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C",
               "SBA_MCP_TOKEN": "5f3a-bench-token-9c41e7"}  # as on a node: it is looked for in all text that comes in


class Sample:
    """Of several runs: seconds and seconds of processor time (medians), and the most KiB."""

    def __init__(self, runs):
        self.seconds = statistics.median(run[0] for run in runs)
        self.kib = max(run[1] for run in runs)
        self.processor = statistics.median(run[2] for run in runs)


def duration(seconds):
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.{2 if seconds < 0.1 else 0}f} ms"


def verdict(value, bound):
    return "holds" if value <= bound else "**missed**"


def mib(kib):
    return f"{kib / 1024:.1f} MiB"


def row(what, ours, against, theirs, bound):
    """A line of the table for the ratio of two samples."""
    ratio = ours.seconds / theirs.seconds
    judged = f"{ratio:.2f} | ≤ {bound:g} × | {verdict(ratio, bound)}"
    return f"| {what} | {duration(ours.seconds)} | {against} | {duration(theirs.seconds)} | {judged} |"


def row_alone(what, shown, value, bound, unit):
    """A line of the table for a value, in a unit, that is compared with no other program's."""
    return f"| {what} | {shown} | | | | ≤ {bound:g} {unit} | {verdict(value, bound)} |"


class Bench:
    def __init__(self, binary, directory, quick):
        self.directory, self.quick = directory, quick
        os.chmod(directory, 0o755)
        self.tools = directory / "tools"
        self.tools.mkdir()
        self.launcher = self.compiled("launch.c")
        self.binary = shutil.copy(binary, self.tools / "cynode-sba")
        self.file_system = subprocess.check_output(["stat", "-f", "-c", "%T", directory], text=True).strip()
        self.clean()

    def compiled(self, name, *libraries):
        program = self.tools / pathlib.Path(name).stem
        subprocess.run(["cc", "-O2", "-static", "-Wl,--no-warnings", "-o", program,
                        pathlib.Path(__file__).parent / name, *libraries], check=True)
        return program

    def floor(self, mode, count=0):
        """The command of a C program that keeps the runner's promises, with directories of its own and the same job."""
        program = self.compiled("floor.c", "-lcrypto")
        for name in ("job", "workspace"):
            (self.rival / name).mkdir(exist_ok=True)
        shutil.copy(self.job_directory / "job.json", self.rival / "job")
        self.give_tree(self.rival)
        return [program, mode, str(count), self.rival]

    def costs(self):
        report, found = self.rival / "report", []
        for tool, pattern in ((["strace", "-f"], r"^\d+ +\w+\("),
                              (["perf", "stat", "-x,", "-e", "page-faults"], r"^(?=(\d+),)")):
            self.run([*tool, "-o", report, *self.command()])
            found.append(re.findall(pattern, report.read_text(encoding="utf-8", errors="replace"), re.MULTILINE))
        return len(found[0]), int(found[1][0])

    def clean(self):
        """Begins a row: an empty workspace and job directory, and an empty directory for the rival."""
        for name in ("workspace", "job", "rival"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
            (self.directory / name).mkdir()
            self.give(self.directory / name)
        self.workspace, self.job_directory, self.rival = (self.directory / name
                                                          for name in ("workspace", "job", "rival"))

    def set_aside(self, top):
        """Instead of removing it: at each new file ext4 passes over the numbers of files deleted minutes ago."""
        subprocess.run(["find", top, "-type", "f", "-exec", "truncate", "--size=0", "{}", "+"], check=True)
        top.rename(tempfile.mkdtemp(prefix="aside-", dir=self.directory))

    def size(self, full, quick):
        return quick if self.quick else full

    @staticmethod
    def give(*paths):
        if UID:
            for path in paths:
                os.chown(path, UID, UID, follow_symlinks=False)

    def give_tree(self, top):
        for directory, directories, files in os.walk(top):
            self.give(directory, *(os.path.join(directory, name) for name in directories + files))

    def run(self, command, stdout=subprocess.DEVNULL, cwd=None):
        """Runs a command once: (seconds, KiB, seconds of processor time). Anything but success ends the benchmark."""
        with tempfile.TemporaryFile() as report:
            user = {"user": UID, "group": UID, "extra_groups": []} if UID else {}
            status = subprocess.run([self.launcher, str(report.fileno()), *command], stdin=subprocess.DEVNULL,
                                    stdout=stdout, stderr=subprocess.DEVNULL, cwd=cwd or self.rival, env=ENVIRONMENT,
                                    pass_fds=[report.fileno()], **user)
            if status.returncode != 0:
                raise SystemExit(f"{command[0]} failed with {status.returncode}: {self.failure()}")
            report.seek(0)
            nanoseconds, kib, microseconds = report.read().split()
        return int(nanoseconds) / 1e9, int(kib), int(microseconds) / 1e6

    def failure(self):
        result = self.job_directory / "result.json"
        return self.result()["failure_message"] if result.exists() else "no result"

    def write_job(self, *steps, max_output_bytes=1 << 20, arguments="arguments", members=(), **constraints):
        """Steps are (type, arguments); `arguments` is the name of these in the job. `members` are more of the job's."""
        job = {"protocol_version": "1.0", "job_id": "bench", "task_id": "bench",
               "constraints": {"max_runtime_seconds": 3600, "max_output_bytes": max_output_bytes, **constraints},
               "steps": [{"type": kind, arguments: values} for kind, values in steps], **dict(members)}
        path = self.job_directory / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        self.give(path)

    def command(self):
        return [self.binary, "--job", self.job_directory / "job.json", "--result", self.job_directory / "result.json",
                "--workspace", self.workspace, "--log-format", "json"]

    def result(self):
        return json.loads((self.job_directory / "result.json").read_bytes())

    def run_job(self):
        measured = self.run(self.command())
        result = self.result()
        self.check(result["status"] == "success", result["failure_message"])
        return measured, result

    @staticmethod
    def check(holds, message):
        if not holds:
            raise SystemExit(f"wrong outcome: {message}")

    def compare(self, theirs, count, before=lambda: None, stdout=os.devnull, cwd=None):
        """Times the job and their command in turn, count times each. before() comes before every run, untimed."""
        ours_runs, their_runs = [], []
        for _ in range(self.size(count, 1)):
            before()
            ours_runs.append(self.run(self.command()))
            before()
            with open(stdout, "wb") as out:
                their_runs.append(self.run(theirs, stdout=out, cwd=cwd))
        return Sample(ours_runs), Sample(their_runs)
