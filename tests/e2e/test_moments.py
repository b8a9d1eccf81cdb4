# SPDX-License-Identifier: Apache-2.0
"""A crash, a signal and a kill at moments of a run, of an end by exec and of a resumed run: the result has all finished
steps and its ids, --resume goes on, and nothing lives.

Moments are system calls of the main thread. A run without a fault is traced first; then one of its calls at a time
meets the signal.
"""
import collections
import json
import os
import random
import re
import shutil
import sys

import sba
from agent_case import call, calls, finish
from process_case import ProcessCase
from servers import model

MOMENTS = int(os.environ.get("SBA_MOMENTS", "100"))  # of each kind of run and each signal
SIGNALS = [f"signal={name}" for name in ("SIGSEGV", "SIGTERM", "SIGKILL")]
CRASH = ["-e", "inject=pipe2:signal=SIGSEGV:when=4"]  # as the second command starts
FILES = 20


def calls_of(trace):
    """Each system call as its name and how many of that name there were."""
    counts, found = collections.Counter(), []
    for name in re.findall(r"^(\w+)\(", trace, re.MULTILINE):
        counts[name] += 1
        found.append((name, counts[name]))
    return found


def sample(calls):
    stride = max(1, len(calls) / MOMENTS)
    first = random.uniform(0, stride)
    return [calls[int(first + i * stride)] for i in range(int((len(calls) - first) / stride))]


class MomentsCase(ProcessCase):
    """A job, and what must hold after a fault at one moment of it."""
    environment = {"SBA_CONFINE": "off"}

    @classmethod
    def setUpClass(cls):
        cls.validator = sba.result_validator()

    def run_it(self, *more, **options):
        return self.run_job(self.the_job(), *more, **options)

    def save(self):
        """A copy of the job directory and the workspace."""
        saved = self.root / "saved"
        for directory in (self.workspace, self.job_directory):
            shutil.copytree(directory, saved / directory.name, symlinks=True)
        return saved

    def clean(self):
        for directory in (self.workspace, self.job_directory):
            for entry in directory.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def restore(self, saved):
        self.clean()
        for directory in (self.workspace, self.job_directory) if saved else ():
            shutil.copytree(saved / directory.name, directory, dirs_exist_ok=True, symlinks=True)
            for path in [directory, *directory.rglob("*")]:
                self.give(path)

    def traced(self, *more, inject=()):
        trace = self.root / "trace"
        trace.write_text("")
        self.give(trace)
        wrapper = ["strace", "-qq", "-o", str(trace), *inject]
        return self.run_it(*more, wrapper=wrapper), trace.read_text()

    def finished(self):
        """Indexes of the steps that the journal has as done."""
        entries = [line["entry"] for line in self.journal() if line["event"] == "step.finished"]
        return {entry["index"] for entry in entries if entry["status"] == "success"}

    def check_result(self, done, moment, fault, before):
        if done.result is None:
            return self.assertEqual(self.finished(), set(), moment)
        self.validator.validate(done.result)
        ids = ["job-1"] if self.journal() or before else ["job-1", ""]  # empty: the job was not read yet
        self.assertIn(done.result["job_id"], ids, moment)
        there = {step["index"] for step in done.steps if step["status"] == "success"}
        wanted = self.finished() | before if fault in SIGNALS[:2] else before
        self.assertLessEqual(wanted, there, (moment, done.stderr))

    def check(self, done, moment, fault, before):
        try:
            self.check_result(done, moment, fault, before)
            if fault in SIGNALS[:2]:
                self.assertEqual((self.left(), self.temporary_files()), ([], []), (moment, done.stderr))
            again = self.run_it("--resume")
            outcome = again.exit, again.statuses
            self.assertEqual(outcome, (0, ["success"] * self.steps), (moment, done.stderr, again.stderr))
            self.assertEqual((self.left(), self.temporary_files()), ([], []), (moment, again.stderr))
        except json.JSONDecodeError as error:
            self.fail(f"{moment}: {error}")

    def temporary_files(self):
        return [path.name for path in self.workspace.rglob(".sba-*")]

    def sweep(self, *more, saved=None, inject=(), after=None, faults=SIGNALS, of=None):
        """after: what the trace has before the first moment. of: these calls alone."""
        self.restore(saved)
        before = self.finished()
        _, trace = self.traced(*more, inject=inject)
        skipped = len(calls_of(trace[:trace.index(after)])) if after else 0
        for fault in faults:
            calls = [call for call in calls_of(trace)[skipped:] if call[0] in (of or [call[0]])]
            for call, count in sample(calls):
                if call in ("pipe2", "exit_group") and inject:
                    continue
                with self.subTest(fault=fault, call=call, count=count):
                    self.restore(saved)
                    done, _ = self.traced(*more, inject=[*inject, "-e", f"inject={call}:{fault}:when={count}"])
                    self.check(done, (fault, call, count), fault, before)


@sba.wants("strace")
class Direct(MomentsCase):
    """A daemon, a change of many files, a command that waits a little."""
    steps = 5

    def the_job(self):
        patch = "".join(f"--- /dev/null\n+++ b/new{i}\n@@ -0,0 +1 @@\n+x\n" for i in range(FILES))
        return self.job(self.sh("setsid sleep 600 >/dev/null 2>&1 & echo said"), self.sh("sleep 0.03; echo two"),
                        self.apply_diff(patch), self.write_file("a", "x" * 10000), self.read_file("a"))

    def test_of_a_run(self):
        self.sweep()

    def test_of_an_end_by_exec(self):
        self.sweep(inject=CRASH, after="execve(0x")

    def crashed(self):
        """A job directory and a workspace after a crash in the second step."""
        self.clean()
        self.traced(inject=CRASH)
        self.assertEqual(self.finished(), {0})
        return self.save()

    def test_of_a_resumed_run(self):
        self.sweep("--resume", saved=self.crashed())

    def test_a_disk_that_does_not_read(self):
        """An error is never taken for the end of the journal."""
        reading = {"faults": ["error=EIO"], "of": ("read", "pread64")}
        self.sweep(inject=CRASH, after="execve(0x", **reading)
        self.sweep("--resume", saved=self.crashed(), **reading)


@sba.wants("strace")
class Agent(MomentsCase):
    """A model that gave up, and goes on in the resumed run."""
    steps = 2

    def the_job(self):
        return self.job(execution_mode="agent_inference", inference={"allowed_models": ["m"]})

    def run_it(self, *more, replies=(finish("good"), finish("good")), **options):
        with model.Server({"models": {"m": {}}, "replies": list(replies)}) as server:
            return super().run_it(*more, env={"OLLAMA_BASE_URL": server.url}, **options)

    def test_of_a_resumed_run(self):
        work = calls(("write_file", {"path": "a", "content": "x"}), ("run_command", {"shell": "echo hi"}))
        self.run_it(replies=(work, call("finish", answer="no", status="failed", acceptance=[])))
        self.assertEqual(self.finished(), {0, 1})
        self.sweep("--resume", saved=self.save())


if __name__ == "__main__":
    if sba.IS_DEV:
        print("skipped: the sanitizers' own calls are too many", file=sys.stderr)
        sys.exit(77)
    seed = random.randrange(1 << 30)
    random.seed(seed)
    print(f"seed {seed}", file=sys.stderr)
    sba.main()
