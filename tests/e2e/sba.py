# SPDX-License-Identifier: Apache-2.0
"""The binary from outside: job in, result out. What every end-to-end test shares.

SBA_BINARY names the binary, SBA_BUILD its build (dev or release). Run as root, the tests start the runner as an
ordinary user, because it refuses root; run as an ordinary user, they start it as that user.
"""
import contextlib
import datetime
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # where the tests find servers and waiting
import tidy  # noqa: E402
from skips import skip  # noqa: E402, F401  (for the tests)
from waiting import wait_for  # noqa: E402, F401  (for the tests)

BINARY = os.environ["SBA_BINARY"]
TOOLS = pathlib.Path(os.environ.get("SBA_TOOLS", "."))  # where the small programs of these tests are
IN_TIME = 3  # seconds after its deadline within which a job has ended
LONG = bool(os.environ.get("SBA_LONG"))  # tests/run --long: more rounds of what is tried many times
IS_DEV = os.environ.get("SBA_BUILD", "dev") == "dev"
UID = GID = 54321 if os.geteuid() == 0 else None
# A runner behind a wrapper that needs root: start(..., wrapper=[what needs root, *AS_USER], **AS_ROOT).
AS_ROOT = {"user": None, "group": None, "extra_groups": None}
AS_USER = ["setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups"] if UID else []


def ordinary_user():
    return {"user": UID, "group": GID, "extra_groups": []} if UID else {}


def run(*arguments, stdin=b"", env=None, **options):
    """Runs the binary without a job, with no other variables than these. Its output comes as bytes."""
    return subprocess.run([BINARY, *arguments], input=stdin, timeout=120,
                          env={"PATH": "/usr/bin:/bin", **(env or {})},
                          **{"capture_output": True, **ordinary_user(), **options})


def reset_signals():
    """In a child, before it executes the runner: who started the tests may have blocked or ignored some (nohup)."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)


def wants(program):
    """And where it traces, may do so."""
    is_there = may(program, "-o", "/dev/null", "true") if program == "strace" else shutil.which(program)
    return unittest.skipUnless(is_there, f"wants {program}")


@functools.cache
def may(*namespace_and_mount):
    """Whether unshare, mount or strace works here; a chroot, a container and a hardened kernel may refuse."""
    try:
        tried = subprocess.run(namespace_and_mount, stdin=subprocess.DEVNULL, capture_output=True)
    except OSError:
        return False
    return tried.returncode == 0


MAY_MOUNT = bool(UID) and may("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/tmp")


def of_result(name):
    return property(lambda self: self.result[name])


class Outcome:
    """What a finished run left: exit status, result (dict or None), log (list of dicts), stdout and stderr (bytes)."""

    def __init__(self, process, stdout, stderr, result_path):
        self.exit, self.stdout, self.stderr = process.returncode, stdout, stderr
        self.result_bytes = result_path.read_bytes() if result_path.is_file() else None
        self.result = json.loads(self.result_bytes) if self.result_bytes else None

    code, message, answer = of_result("failure_code"), of_result("failure_message"), of_result("final_answer")
    status, steps = of_result("status"), of_result("steps")
    acceptance, confinement = of_result("acceptance"), of_result("confinement")

    @property
    def statuses(self):
        return [step["status"] for step in self.steps]

    @property
    def verdicts(self):
        return [(one["met"], one["verified_by"]) for one in self.acceptance]

    @property
    def log(self):
        """What else may stand on stderr is the result, where nothing else took it."""
        return [json.loads(line) for line in self.stderr.splitlines() if line.startswith(b'{"ts"')]

    def events(self, name):
        return [line for line in self.log if line["event"] == name]

    @property
    def result_on_stderr(self):
        return json.loads(next(line for line in self.stderr.splitlines() if line.startswith(b'{"protocol_version"')))


class Fifo(pathlib.PosixPath):
    """A FIFO to which the test writes. Opening it waits for a command that reads, but not for one that never comes."""

    def open(self, *_, **__):
        return os.fdopen(wait_for(self.reader, f"a command to read {self.name}"), "w")

    def reader(self):
        with contextlib.suppress(OSError):
            return os.open(self, os.O_WRONLY | os.O_NONBLOCK)


class SandboxCase(unittest.TestCase):
    """Has a job directory and a workspace of its own, both owned by the ordinary user."""

    place = None  # where their directory is made; None: with the other temporary ones
    environment = {}  # of every runner

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sba-test-", dir=self.place))
        self.addCleanup(tidy.remove, self.root)
        self.addCleanup(tidy.end, self.root)
        os.chmod(self.root, 0o755)
        self.job_directory, self.workspace = self.root / "job", self.root / "workspace"
        for directory in (self.job_directory, self.workspace):
            self.folder(directory)
        self.result_path, self.journal_file = self.job_directory / "result.json", self.job_directory / "journal.jsonl"

    def closing(self, server):
        self.addCleanup(server.close)
        return server

    def give(self, *paths):
        if UID:
            for path in paths:
                os.chown(path, UID, GID, follow_symlinks=False)

    def folder(self, path):
        """Makes a directory."""
        path.mkdir(exist_ok=True)
        self.give(path)
        return path

    def put(self, path, content=b"", mode=0o644):
        """Writes a file, with its directories. A path that is not absolute is one of the workspace."""
        target = self.workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        target.chmod(mode)
        self.give(target)
        for parent in target.parents:
            if parent == self.root:
                break
            self.give(parent)
        return target

    def text(self, path):
        return (self.workspace / path).read_text()

    def clean(self):
        """Removes what lies in the workspace and in the job directory."""
        for entry in [*self.workspace.iterdir(), *self.job_directory.iterdir()]:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()

    def fifo(self, name="turn"):
        """A FIFO of the workspace: the command that reads it and the test that writes it wait for each other."""
        path = Fifo(self.workspace / name)
        os.mkfifo(path)
        self.give(path)
        return path

    def mount(self, directory, size):
        """Mounts an empty file system; size as in "64k". Skips the test where nothing can be mounted."""
        if not MAY_MOUNT:
            self.skipTest("nothing can be mounted here")
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", directory], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", directory], check=True)

    @staticmethod
    def job(*steps, **fields):
        """Constraints may be given by name."""
        constraints = {"max_runtime_seconds": 60, "max_output_bytes": 1 << 20}
        for name in ("max_runtime_seconds", "max_output_bytes", "ext_net_allowed", "report_changes"):
            if name in fields:
                constraints[name] = fields.pop(name)
        return {"protocol_version": "1.0", "job_id": "job-1", "task_id": "task-1", "constraints": constraints,
                "steps": list(steps), **fields}

    @staticmethod
    def step(type, **arguments):
        return {"type": type, "arguments": arguments}

    @staticmethod
    def sh(script, **more):
        return SandboxCase.step("run_command", shell=script, **more)

    def until_said(self, output):
        """A script that waits until the result file has an output that begins so."""
        return f"""until grep -qF '"output":"{output}' {self.result_path}; do sleep 0.05; done"""

    @staticmethod
    def run_command(command, **more):
        return SandboxCase.step("run_command", command=command, **more)

    @staticmethod
    def read_file(path, **more):
        return SandboxCase.step("read_file", path=path, **more)

    @staticmethod
    def write_file(path, content, **more):
        return SandboxCase.step("write_file", path=path, content=content, **more)

    @staticmethod
    def apply_diff(diff, **more):
        return SandboxCase.step("apply_unified_diff", diff=diff, **more)

    def arguments(self):
        return ["--job", str(self.job_directory / "job.json"), "--result", str(self.result_path),
                "--workspace", str(self.workspace)]

    def fresh(self):
        """For a job that runs beside this one's."""
        case = type(self)()
        case.setUp()
        self.addCleanup(case.doCleanups)
        return case

    @staticmethod
    def in_namespace(commands, *wrapper):
        """Options of start() with which root runs shell commands in a mount namespace of its own, and there the runner
        as the user. wrapper: a command before the binary."""
        enter = ["unshare", "--mount", "--propagation=private", "sh", "-ec", commands + '\nexec "$@"', "sh"]
        return {"wrapper": [*enter, *AS_USER, *wrapper], **AS_ROOT}

    def start(self, job, *more, wrapper=(), env=None, arguments=None, **options):
        """Starts the runner on a job (dict, str or bytes) and returns the Popen. wrapper: a command before the binary;
        arguments: in place of those that name job, result and workspace."""
        if isinstance(job, dict):
            job = json.dumps(job)
        path = self.job_directory / "job.json"
        path.write_bytes(job if isinstance(job, bytes) else job.encode())
        self.give(path)
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", **self.environment, **(env or {})}
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "preexec_fn": reset_signals, **ordinary_user(), **options}
        arguments = self.arguments() if arguments is None else arguments
        return subprocess.Popen([*wrapper, BINARY, *arguments, *more], env=environment, **options)

    def journal(self):
        """The whole lines of the journal; none where there is no journal."""
        text = self.journal_file.read_text() if self.journal_file.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def todo_items(self):
        return json.loads((self.job_directory / "todo.json").read_text())["items"]

    def recording(self):
        return self.put(self.root / "recording.jsonl", self.journal_file.read_bytes())

    def run_job(self, job, *more, timeout=120, **options):
        return self.outcome_of(self.start(job, *more, **options), timeout)

    def run_steps(self, *steps, env=None, wrapper=(), timeout=120, **fields):
        return self.run_job(self.job(*steps, **fields), env=env, wrapper=wrapper, timeout=timeout)

    def run_and_signal(self, job, number, condition, what, *more, **options):
        """Sends the runner a signal once condition() holds. what: that which is waited for."""
        process = self.start(job, *more, **options)
        wait_for(condition, what)
        process.send_signal(number)
        return self.outcome_of(process)

    def run_and_kill(self, job, *more, **options):
        """Kills the runner once a command has made the file `killed`."""
        killed = (self.workspace / "killed").exists
        return self.run_and_signal(job, signal.SIGKILL, killed, "the file `killed`", *more, **options)

    def outcome_of(self, process, timeout=120):
        """The outcome of a started run. One that hangs past timeout (seconds) is killed and fails the test."""
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f"the runner did not end within {timeout} s")
        return Outcome(process, stdout, stderr, self.result_path)

    # Each gives the outcome that it judged; says: parts of its message.
    def assert_end(self, outcome, exit, code=None, *says):
        self.assertEqual((outcome.exit, outcome.code), (exit, code), outcome.result)
        self.assert_says(outcome.message, *says)
        return outcome

    def assert_says(self, text, *parts):
        for part in parts:
            self.assertIn(part, text)

    def assert_lacks(self, text, *parts):
        for part in parts:
            self.assertNotIn(part, text)

    def assert_answer(self, outcome, answer):
        self.assertEqual((outcome.exit, outcome.answer), (0, answer), outcome.result)
        return outcome

    def assert_in_time(self, done, max_runtime_seconds, slow):
        """From the acceptance on, by the log's own times. Where others use the machine too, it may take as many times
        longer as everything does, and in a plain run three times as long. slow: slowness() before."""
        times = {line["event"]: datetime.datetime.fromisoformat(line["ts"].replace("Z", "+00:00")) for line in done.log}
        lasted = (times["job.finished"] - times["job.accepted"]).total_seconds()
        self.assertLess(lasted, max_runtime_seconds + IN_TIME * max(slow, slowness(), 1 if LONG else 3))


def timeless(result, *more):
    """A result, or a part of one, as text, without what differs from run to run, and without more."""
    differ = {"started_at", "finished_at", "duration_ms", "cpu_time_ms", "max_rss_bytes", *more}

    def same(part):
        return {name: part[name] for name in part if name not in differ}
    return json.dumps(json.loads(json.dumps(result), object_hook=same))


def without_times(result):
    """Equal in two runs of a job, though a file that the killed run wrote is there already."""
    whole = json.loads(timeless(result, "created", "note"))
    for step in whole["steps"]:
        step["output"] = step.get("output", "").replace("created ", "wrote ", 1)
    return whole


def strace(calls, *more, log="/dev/null"):
    """A wrapper for start() that traces these system calls. LeakSanitizer does not work under it."""
    return ["strace", "-qq", "-E", "ASAN_OPTIONS=detect_leaks=0", "-o", str(log), "-e", f"trace={calls}", *more]


def without(call, error="ENOSYS"):
    """A wrapper for start() under which a system call always fails."""
    return [TOOLS / "without", call, error]


def injecting(call, fault):
    """A wrapper for start() in which a system call meets a fault, such as "error=EIO:when=2"."""
    return strace(call, "-e", f"inject={call}:{fault}")


@functools.cache
def result_validator():
    import jsonschema  # here: most tests have no use for it
    schema = subprocess.run([BINARY, "--schema", "result"], capture_output=True, check=True).stdout
    return jsonschema.Draft202012Validator(json.loads(schema))


def slowness():
    """How many times longer something takes than if it had a processor for itself."""
    begun, used = time.monotonic(), time.process_time()
    while time.process_time() - used < 0.1:
        pass
    return (time.monotonic() - begun) / (time.process_time() - used)


def main(name):
    """The last line of each file: runs its tests where it is the program. Afterwards nothing of them is alive."""
    if name != "__main__":
        return
    program = unittest.main(verbosity=2, exit=False)
    left = tidy.end(tidy.ROOT, tidy.GRACE)
    for words in left:
        print(f"left running: {words}", file=sys.stderr)
    sys.exit(not program.result.wasSuccessful() or bool(left))
