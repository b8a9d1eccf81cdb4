# SPDX-License-Identifier: Apache-2.0
"""A crash, a signal, a kill and each error that fits at moments of a run, of an end by exec and of a resumed run: it
ends by itself, the result is whole and knows all that was finished, a patch is there as a whole or not at all, nothing
lives, and --resume goes on.

Moments are system calls of the main thread. A run without a fault is traced first; then one of its calls at a time
meets the signal or fails. A plain run tries a few; SBA_MOMENTS says how many of each kind of run and each fault.
"""
import collections
import json
import math
import os
import random
import re
import shutil
import sys

import sba
from agent_case import call, calls, finish
from process_case import ProcessCase
from servers import model

MOMENTS = int(os.environ.get("SBA_MOMENTS", "100" if sba.LONG else "1"))  # of each kind of run and each fault
SIGNALS = [f"signal={name}" for name in ("SIGSEGV", "SIGTERM", "SIGKILL")]
KILL = SIGNALS[2]
OPENING, WRITING = "open openat openat2", "write writev pwrite64 ftruncate fallocate"
ASKING = "stat fstat newfstatat readlink faccessat2"
NAMING = "mkdir mkdirat linkat renameat renameat2"
# Which calls may fail how. close does not: where it fails, it has closed all the same, which strace cannot do.
ERRORS = {f"error={error}": set(calls.split()) for error, calls in {
    "EIO": f"read pread64 {WRITING} {OPENING} {NAMING} {ASKING} unlinkat getdents64 fchmod fsync",
    "ENOSPC": f"{WRITING} {NAMING} {OPENING}",
    "EMFILE": f"{OPENING} pipe2 eventfd2 timerfd_create memfd_create socket",
    "ENOMEM": f"{OPENING} mmap mprotect brk clone poll getdents64 fstat newfstatat readlink execve",
    "EINTR": f"read pread64 {WRITING} {OPENING} poll wait4 waitid flock connect sendmsg recvmsg sendto recvfrom",
    "ECONNRESET": "connect sendmsg recvmsg sendto recvfrom",
}.items()}
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
    return [calls[int(first + i * stride)] for i in range(math.ceil((len(calls) - first) / stride))]


class MomentsCase(ProcessCase):
    """A job, and what must hold after a fault at one moment of it."""
    environment = {"SBA_CONFINE": "off"}

    def run_it(self, *more, **options):
        return self.run_job(self.the_job(), *more, **options)

    def save(self):
        """A copy of the job directory and the workspace."""
        saved = self.root / "saved"
        for directory in (self.workspace, self.job_directory):
            shutil.copytree(directory, saved / directory.name, symlinks=True)
        return saved

    def restore(self, saved):
        self.clean()
        for directory in (self.workspace, self.job_directory) if saved else ():
            shutil.copytree(saved / directory.name, directory, dirs_exist_ok=True, symlinks=True)
            for path in [directory, *directory.rglob("*")]:
                self.give(path)

    def traced(self, *more, inject=()):
        trace = self.put(self.root / "trace", "")
        wrapper = ["strace", "-qq", "-o", str(trace), *inject]
        return self.run_it(*more, wrapper=wrapper), trace.read_text()

    def finished(self):
        """Indexes of the steps that the journal has as done."""
        entries = [line["entry"] for line in self.journal() if line["event"] == "step.finished"]
        return {entry["index"] for entry in entries if entry["status"] == "success"}

    def check_result(self, done, moment, fault, before, is_crash):
        if done.result is None:
            self.assertTrue(fault in SIGNALS or done.exit == 3, (moment, done.stderr))
            return self.assertEqual(self.finished(), set(), moment)
        sba.result_validator().validate(done.result)
        ids = ["job-1"] if self.journal() or before else ["job-1", ""]  # empty: the job was not read yet
        self.assertIn(done.result["job_id"], ids, moment)
        there = {step["index"] for step in done.steps if step["status"] == "success"}
        # Of a crash an unreadable journal leaves the result that stands.
        knows_less = fault == KILL or done.exit == 3 or fault in ERRORS and is_crash
        wanted = before if knows_less else self.finished() | before
        self.assertLessEqual(wanted, there, (moment, done.stderr))
        return there

    def check_end(self, done, moment, is_crash):
        """Of a run that ended by itself: exit status and result say the same, and nothing of it is left."""
        statuses = {0: "success", 1: "failure", 2: "failure", 75: "failure", 124: "timeout"}
        if done.exit != 3:
            self.assertEqual(done.status, statuses[done.exit], (moment, done.stderr))
            self.assertTrue(is_crash or done.code != "interrupted", moment)
        if done.exit == 0:
            self.assertEqual(done.statuses, ["success"] * self.steps, moment)
        self.check_nothing_left(moment, done)

    def check(self, done, moment, fault, before, is_crash):
        try:
            there = self.check_result(done, moment, fault, before, is_crash)
            if fault in ERRORS:
                self.check_end(done, moment, is_crash)
                if done.result is None or done.code != "interrupted":
                    self.check_files(there or set(), moment)
            elif fault != KILL:
                self.check_nothing_left(moment, done)
            if fault in ERRORS and (b"this job cannot be resumed" in done.stderr or self.ends_in_failure()):
                return
            again = self.run_it("--resume")
            outcome = again.exit, again.statuses
            self.assertEqual(outcome, (0, ["success"] * self.steps), (moment, done.stderr, again.stderr))
            self.check_nothing_left(moment, again)
        except json.JSONDecodeError as error:
            self.fail(f"{moment}: {error}")

    def check_files(self, there, moment):
        """there: indexes of the steps that succeeded, as the result says."""

    def check_nothing_left(self, moment, done):
        """What was killed where nothing could be reaped may take a while to go."""
        self.assertEqual([path.name for path in self.workspace.rglob(".sba-*")], [], (moment, done.stderr))
        if moment[0] in ERRORS:
            sba.wait_for(lambda: not self.left(), f"the end of all processes after {moment}")
        self.assertEqual(self.left(), [], (moment, done.stderr))

    def ends_in_failure(self):
        """Of the journal: --resume refuses it."""
        journal = self.journal()
        return journal and journal[-1]["event"] == "journal.failed"

    def sweep(self, *more, saved=None, inject=(), after=None):
        """after: what the trace has before the first moment."""
        self.restore(saved)
        before = self.finished()
        _, trace = self.traced(*more, inject=inject)
        skipped = len(calls_of(trace[:trace.index(after)])) if after else 0
        found = [call for call in calls_of(trace)[skipped:] if not inject or call[0] not in ("pipe2", "exit_group")]
        for fault in [*SIGNALS, *ERRORS]:
            for call, count in sample([call for call in found if call[0] in ERRORS.get(fault, call[0])]):
                with self.subTest(fault=fault, call=call, count=count):
                    self.restore(saved)
                    done, _ = self.traced(*more, inject=[*inject, "-e", f"inject={call}:{fault}:when={count}"])
                    self.check(done, (fault, call, count), fault, before, bool(inject))


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

    def test_where_the_new_image_of_an_end_cannot_even_start(self):
        _, trace = self.traced(inject=CRASH)
        count = dict(calls_of(trace[:trace.index("execve(0x")])).get("mprotect", 0) + 1
        self.restore(None)
        done, _ = self.traced(inject=[*CRASH, "-e", f"inject=mprotect:error=ENOMEM:when={count}"])
        self.assertIn(b"cannot start: making relocated data read-only", done.stderr)
        self.check(done, ("mprotect", count), "error=ENOMEM", set(), True)

    def crashed(self):
        """A job directory and a workspace after a crash in the second step."""
        self.clean()
        self.traced(inject=CRASH)
        self.assertEqual(self.finished(), {0})
        return self.save()

    def test_of_a_resumed_run(self):
        self.sweep("--resume", saved=self.crashed())

    def check_files(self, there, moment):
        patched, written = len(list(self.workspace.glob("new*"))), (self.workspace / "a").exists()
        self.assertEqual((patched, written), (FILES * (2 in there), 3 in there), moment)


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

    def check_files(self, there, moment):
        self.assertEqual((self.workspace / "a").exists(), 0 in there, moment)


if sba.IS_DEV:
    sba.skip("the sanitizers' own calls are too many")
seed = random.randrange(1 << 30) if sba.LONG else 1
random.seed(seed)
print(f"seed {seed}", file=sys.stderr)
sba.main(__name__)
