# SPDX-License-Identifier: Apache-2.0
"""What commands can reach: the kernel keeps them from the job directory, the token and the runner."""
import os
import shutil
import subprocess
import unittest

import sba
from confined_case import ABI, TOKEN, ConfinedCase

IOCTL = "python3 -c 'import fcntl; fcntl.ioctl(open(\"{job}/result.json\"),"
ATTACKS = {
    "rewrites the result": "echo {{}} > {job}/result.json",
    "appends to the journal": "echo {{}} >> {job}/journal.jsonl",
    "truncates the list": "truncate -s 0 {job}/todo.json",
    "renames the result": "mv {job}/result.json {workspace}/stolen",
    "unlinks the journal": "rm -f {job}/journal.jsonl",
    "links the journal": "ln {job}/journal.jsonl {workspace}/link && echo x >> {workspace}/link",
    "puts a file beside it": "echo x > {job}/other",
    "puts a link beside it": "ln -s /etc/passwd {job}/other",
    "makes a directory there": "mkdir {job}/other",
    "renames the directory": "mv {job} {root}/other",
    "exchanges the directory": "mv -T {workspace} {root}/other",
    "goes through the root of /proc": "echo x > /proc/self/root{job}/result.json",
    "goes through a link of the workspace": "ln -s {job} there; echo x > there/result.json",
    "goes through a working directory": "cd {job} && echo x > result.json",
    "mounts over it": "unshare -rm sh -c 'mount -t tmpfs none {job}'",
    "binds over it": "unshare -rm sh -c 'mount --bind {workspace} {job}'",
    "makes a pipe of it": "rm -f {job}/result.json; mkfifo {job}/result.json",
    "uses a descriptor of the runner": "for fd in /proc/$PPID/fd/*; do echo x > $fd; done",
    "clones a file over it": f"{IOCTL} 0x40049409, open(\"/etc/passwd\").fileno())'",
    "makes it immutable": f"{IOCTL} 0x40086602, bytes([16, *[0] * 7]))'",
    "uses a setuid helper": "{root}/helper /etc/passwd {job}/other",
    "writes the memory of the runner": "echo x > /proc/$PPID/mem",
}


@unittest.skipUnless(ABI >= 3, "this kernel's Landlock is older than version 3")
class JobDirectory(ConfinedCase):
    def test_no_command_changes_it(self):
        helper = self.root / "helper"
        shutil.copy("/bin/cp", helper)
        helper.chmod(0o4755)  # of root, where the test is
        for what, attack in ATTACKS.items():
            with self.subTest(what):
                script = attack.format(job=self.job_directory, workspace=self.workspace, root=self.root)
                done, said = self.shell(f"{{ {script}; }} && echo done it")
                self.assertNotIn("done it", said.splitlines()[-1:], what)
                self.assert_untouched(done)
                self.assertEqual(done.confinement["writes"], "landlock")

    def test_chmod_of_the_job_directory_is_undone(self):
        for mode in (0, 0o600, 0o300):
            done, _ = self.shell(f"chmod {mode:o} {self.job_directory}; sleep 0.5")
            self.assert_end(done, 0)
            self.assertEqual(self.job_directory.stat().st_mode & 0o777, 0o755)

    def test_the_same_attacks_hit_where_it_is_off(self):
        done, said = self.shell(f"echo x > {self.job_directory}/other && echo done it", env={"SBA_CONFINE": "off"})
        self.assertIn("done it", said)
        self.assertEqual(done.confinement, {"writes": "none"})

    def test_what_an_earlier_step_left_cannot_either(self):
        late = f"until test -e next; do sleep 0.05; done; echo x > {self.job_directory}/other; echo tried > tried"
        done = self.run_steps(self.sh(f"({late}) >/dev/null 2>&1 &"),
                              self.sh("touch next; until test -s tried; do sleep 0.05; done; cat tried"))
        self.assertEqual(done.steps[1]["output"], "tried\n")
        self.assertFalse((self.job_directory / "other").exists())

    def test_artifacts_workspace_and_the_shared_directories_are_writable(self):
        memory = [path for path in ["/dev/shm"]
                  if os.path.isdir(path) and os.stat(path).st_mode & 0o2]  # a chroot may have none for all
        places = " ".join(['.', '"$CYNODE_ARTIFACTS_DIR"', "/tmp", "/var/tmp", *memory])
        done, said = self.shell(f'for d in {places}; do f=$(mktemp -p "$d") && rm "$f" && echo ok; done')
        self.assertEqual((done.exit, said), (0, "ok\n" * (4 + len(memory))))
        self.assertNotIn("partial", done.confinement)
        self.assertEqual(done.events("confinement.partial"), [])
        self.assertEqual(done.events("job.accepted")[0]["confinement"], done.confinement)

    def test_another_directory_is_writable_where_the_operator_says_so(self):
        more = self.folder(self.root / "more")
        script = f"echo x > {more}/file"
        done, _ = self.shell(script)
        self.assertEqual(done.exit, 1)
        self.assertIn(f"SBA_WRITABLE={more} would allow it", done.steps[0]["error"])
        self.assertIn(f"commands may not write {more}", done.message)
        done, _ = self.shell(script, env={"SBA_WRITABLE": f"/nowhere:{more}"})
        self.assert_end(done, 0)
        self.assertIn(str(more), done.confinement["writable"])

    def test_what_its_user_may_not_write_is_not_put_down_to_the_rules(self):
        closed = self.root / "closed"
        closed.mkdir(mode=0o555)
        self.give(closed)
        done, _ = self.shell(f"echo x > {closed}/file")
        self.assertEqual(done.exit, 1)
        self.assertNotIn("SBA_WRITABLE", done.message)

    def test_the_job_directory_is_named_where_a_command_could_not_write_it(self):
        done, _ = self.shell(f"touch {self.job_directory}/other")
        self.assertIn(f"{self.job_directory} is written by the runner alone", done.message)

    def test_a_job_directory_below_a_writable_one_is_said(self):
        done, _ = self.shell("true", env={"SBA_WRITABLE": str(self.root)})
        self.assertEqual(done.confinement["partial"], [
            f"a command could change this job's result: the job directory {self.job_directory} "
            f"lies below {self.root}, which commands may write"])
        self.assertEqual([line["level"] for line in done.events("confinement.partial")], ["warning"])
        done, _ = self.shell("true", env={"SBA_WRITABLE": str(self.job_directory)})
        (said,) = done.confinement["partial"]
        self.assertIn(f"the job directory {self.job_directory} is one that commands may write", said)

    @sba.wants("strace")
    @unittest.skipIf(sba.IS_DEV or os.uname().machine != "x86_64",
                     "the sanitizers read links too, and not every machine has this call")
    def test_a_path_that_cannot_be_told_is_said(self):
        for mode, status in (("auto", 1), ("require", 2)):
            done, _ = self.shell("touch made", env={"SBA_CONFINE": mode},
                                 wrapper=sba.injecting("readlink", "error=EIO"))
            self.assertEqual(done.exit, status, done.result)
            said = done.message if status == 2 else "; ".join(done.confinement["partial"])
            self.assertIn("Input/output error" if status == 1 else "the result",
                          said.replace("I/O error", "Input/output error"))
            self.assertEqual("commands cannot write the workspace" in said, status == 1, said)
            self.assertIn("it cannot be told whether commands can write the result", said)

    def test_required_it_is_refused_where_commands_could_write_the_evidence(self):
        done, _ = self.shell("touch ran", env={"SBA_CONFINE": "require", "SBA_WRITABLE": str(self.root)})
        self.assert_end(done, 2, "environment_invalid",
                        f"the job directory {self.job_directory} lies below {self.root}")
        self.assertFalse((self.workspace / "ran").exists())

    def test_home_slash(self):
        done, said = self.shell(f"echo x > {self.job_directory}/result.json; echo x > {self.root}/other; echo over >&2",
                                env={"HOME": "/", "TMPDIR": "/"})
        self.assertEqual(said.splitlines()[-1], "over")
        self.assert_untouched(done)
        self.assertFalse((self.root / "other").exists())
        self.assertNotIn("/", done.confinement["writable"])

    def test_home_above_the_job_directory(self):
        (self.root / "cache").mkdir()
        (self.root / "file").touch()
        (self.root / "link").symlink_to("job")
        self.give(self.root, self.root / "cache", self.root / "file")
        files = "cache/new file new job/new job/result.json job/journal.jsonl link/new"
        done, said = self.shell(f"for f in {files}; do (echo x >> $HOME/$f) 2>/dev/null && echo $f; done; true",
                                env={"HOME": str(self.root), "SBA_CONFINE": "require"})
        self.assertEqual((done.exit, said.split()), (0, ["cache/new", "file"]))
        self.assert_untouched(done)
        self.assertNotIn("partial", done.confinement)

    def test_home_with_too_many_entries(self):
        (self.root / "many").mkdir()
        for number in range(4100):
            (self.root / f"entry-{number}").touch()
        self.give(self.root, self.root / "many")
        done, said = self.shell("touch $HOME/many/x 2>/dev/null || echo no", env={"HOME": str(self.root)})
        self.assertEqual(said, "no\n")
        self.assertIn(f"commands can write nothing in {self.root} (HOME)", done.confinement["partial"][0])


@unittest.skipUnless(ABI, "this kernel has no Landlock")
class Token(ConfinedCase):
    def read(self, script, **more):
        return self.shell(script, env={"SBA_MCP_TOKEN_FILE": str(self.token), **more})

    def test_no_command_opens_its_file(self):
        (self.workspace / "link").symlink_to(self.token)
        for name in (self.token, f"/proc/self/root{self.token}", "link", f"../secrets/{self.token.name}",
                     f"{self.secret}/./token"):
            done, said = self.read(f"cat {name}; exit 0")
            self.assertIn("Permission denied", said, name)
            self.assertNotIn(TOKEN, done.result_bytes.decode())
        for script in (f"ln {self.token} copy && cat copy", f"cp {self.token} copy && cat copy",
                       f"mv {self.token} copy && cat copy",
                       f"mv {self.secret} {self.root}/other && cat {self.root}/other/token"):
            done, said = self.read(script)
            self.assertNotIn(TOKEN, said, script)
            self.assertNotEqual(done.exit, 0, script)
        self.assertEqual(self.token.read_text(encoding="utf-8"), TOKEN)

    def test_no_command_opens_the_file_of_the_api_key_either(self):
        # Wherever it lies: beside the token, above it, below a directory beside it, alone.
        deep = self.secret / "deep"
        deep.mkdir()
        for key in (self.secret / "key", self.root / "key", deep / "key"):
            key.write_text("key-" + TOKEN, encoding="utf-8")
            self.give(deep, key)
            (key.parent / "readable").write_text("readable", encoding="utf-8")
            for names in ({"SBA_MCP_TOKEN_FILE": str(self.token)}, {}):
                hidden = [key, *names.values()]
                done, said = self.shell(f"cat {' '.join(map(str, hidden))} {key.parent}/readable; true",
                                        env={"SBA_API_KEY_FILE": str(key), **names})
                self.assertEqual((done.exit, said.count("Permission denied"), said.count("readable")),
                                 (0, len(hidden), 1), said)
                self.assertNotIn("redacted", said)

    def test_everything_else_can_be_read(self):
        (self.secret / "other").write_text("readable", encoding="utf-8")
        done, said = self.read(f"cat {self.secret}/other; cat /etc/hostname /proc/self/status >/dev/null && "
                               "head -c1 /dev/zero | wc -c")
        self.assertEqual((done.exit, said), (0, "readable1\n"))

    def test_a_token_below_a_writable_directory_is_partial(self):
        done, _ = self.read("true", SBA_WRITABLE=str(self.secret))
        self.assertRegex(done.confinement["partial"][0],
                         f"the agent's token {self.token} can be read by commands.*lies below {self.secret}")
        done, _ = self.read("true", SBA_WRITABLE=str(self.token))
        self.assertIn("can be read by commands: they may write it", done.confinement["partial"][0])


# Every way to send a signal to a process or to one of its threads.
KILLER = """
import ctypes, fcntl, os, signal, sys

def own(runner, number):
    "Makes the runner the owner of a pipe, and lets the pipe send it the signal."
    reading, writing = os.pipe()
    for owner in (runner, -os.getpgid(runner) or runner):
        fcntl.fcntl(reading, fcntl.F_SETOWN, owner)
        fcntl.fcntl(reading, 10, number)
        fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
        os.write(writing, b"x")

runner, libc = os.getppid(), ctypes.CDLL(None)
assert open(f"/proc/{runner}/comm").read() == "sba\\n"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for number in (signal.SIGTERM, signal.SIGKILL):
    for send in (lambda: os.kill(runner, number), lambda: signal.pidfd_send_signal(os.pidfd_open(runner), number),
                 lambda: os.killpg(os.getpgid(runner) or runner, number), lambda: os.kill(-1, number),
                 lambda: signal.pidfd_send_signal(os.open(f"/proc/{runner}", os.O_RDONLY), number),
                 lambda: own(runner, number)):
        try:
            send()
            print("sent")
        except (PermissionError, ProcessLookupError):
            pass
    for task in os.listdir(f"/proc/{runner}/task"):
        if libc.syscall(234, runner, int(task), number) == 0 or libc.syscall(200, int(task), number) == 0:
            print("sent to", task)
        if libc.kill(int(task), number) == 0:
            print("sent to", task)
print("alive")
"""


# The same by the calls of 32-bit programs, and what else harms the runner. Each line that is printed was allowed.
HARM = """
import ctypes, mmap, os, resource
runner = os.getppid()
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# push rbx; eax, ebx, ecx = arguments; int 0x80; pop rbx
code.write(bytes.fromhex("53 89 f8 89 f3 89 d1 89 ca cd 80 5b c3"))
call = ctypes.CFUNCTYPE(*[ctypes.c_int] * 4)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
for number, target in ((37, runner), (37, -1), (238, runner), (37, -os.getpgid(runner) or runner)):
    if call(number, target, 15) != -1:
        print("i386", number, target)
libc = ctypes.CDLL(None)
if libc.syscall(0x40000000 | 62, runner, 15) == 0:
    print("x32")
if libc.syscall(62, ctypes.c_long(runner | 1 << 32), 15) == 0:
    print("the kernel takes the low half")
def tried(what, *arguments):
    try:
        what(*arguments)
        print(what.__name__, arguments)
    except OSError:
        pass
for task in map(int, os.listdir(f"/proc/{runner}/task")):
    tried(os.sched_setaffinity, task, {0})
    tried(os.sched_setscheduler, task, os.SCHED_IDLE, os.sched_param(0))
    tried(os.sched_setparam, task, os.sched_param(0))
    tried(os.setpriority, os.PRIO_PROCESS, task, 19)
    if libc.syscall(251, 1, task, 3 << 13) == 0:
        print("ioprio_set", task)
tried(os.setpriority, os.PRIO_PGRP, os.getpgid(runner) or runner, 19)
tried(os.setpriority, os.PRIO_USER, os.getuid(), 19)
for limit in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
    tried(resource.prlimit, runner, limit, (0, 0))
resource.prlimit(runner, resource.RLIMIT_CPU)
resource.prlimit(0, resource.RLIMIT_CPU, (100, 100))
os.setpriority(os.PRIO_PROCESS, 0, 19)
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
print("over")
"""
SHELL = """pkill node; kill -TERM $PPID; kill -9 -1; prlimit --pid $PPID --cpu=0:0; prlimit --pid $PPID --fsize=0
chrt -i -p 0 $PPID; renice 19 $PPID; true"""
# PID 1 of a PID namespace is the runner, or a shell that is its parent.
NAMESPACES = {"as PID 1": ["unshare", "-pf", "--mount-proc"],
              "below PID 1": ["unshare", "-pf", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh"]}


class OutOfReach(ConfinedCase):
    """The seccomp filter, with Landlock and without it."""

    def harm(self, wrapper=(), **options):
        self.put("killer.py", KILLER)
        self.put("harm.py", HARM)
        steps = [self.step("run_command", argv=["/usr/bin/python3", name]) for name in ("killer.py", "harm.py")]
        steps += [self.sh(SHELL)] if wrapper else []
        for mode in ("off", "auto"):
            with self.subTest(mode):
                done = self.run_job(self.job(*steps,
                                             self.sh(f"trap '' TERM; pkill -f {self.job_directory}; echo after")),
                                    env={"SBA_CONFINE": mode}, wrapper=wrapper, **options)
                self.assertEqual(done.exit, 0, done.steps)
                outputs = [step["result"]["stdout"] for step in done.steps]
                self.assertEqual([*outputs[:2], outputs[-1]], ["alive\n", "over\n", "after\n"])

    def test_no_command_signals_limits_or_schedules_the_runner(self):
        self.harm()

    @unittest.skipUnless(sba.UID and sba.may("unshare", "-pf", "--mount-proc", "true"), "no PID namespace is to be had")
    def test_no_command_signals_the_runner_in_a_pid_namespace(self):
        for name, wrapper in NAMESPACES.items():
            with self.subTest(name):
                self.harm([*wrapper, *sba.AS_USER], **sba.AS_ROOT)

    @sba.wants("strace")
    def test_no_thread_starts_later_which_the_filter_would_not_know(self):
        trace = self.workspace / "trace"
        for number in range(6):  # of the thread that cannot start; 0: all can
            fault = ["-e", f"inject=clone:error=EAGAIN:when={number}"] if number else []
            tracing = sba.strace("clone,clone3,seccomp", "-f", *fault, log=trace)
            outcome = self.run_job(self.job(self.sh("true"), self.sh("true")), wrapper=tracing)
            self.assertTrue(number or outcome.exit == 0, outcome.stderr)
            _, made, later = trace.read_text().partition("SECCOMP_SET_MODE_FILTER")
            self.assertTrue(number or made)
            self.assertNotIn("CLONE_THREAD", later, number)

    def test_where_the_kernel_has_no_filters_the_job_runs_and_the_result_says_so(self):
        for mode in ("off", "auto"):
            done, said = self.shell("echo works", wrapper=sba.without("seccomp"), env={"SBA_CONFINE": mode})
            self.assertEqual((done.exit, said), (0, "works\n"))
            self.assertIn("the kernel has no seccomp filters", done.confinement["partial"][0])
            self.assertEqual([line["level"] for line in done.events("confinement.partial")], ["info"])


@unittest.skipUnless(ABI >= 6, "this kernel's Landlock does not confine signals")
class Signals(ConfinedCase):
    def test_commands_signal_each_other(self):
        self.assert_end(self.run_job(self.job(
            self.sh("sleep 300 >/dev/null 2>&1 & echo $! > pid"),
            self.sh("sleep 300 & kill $!; wait $!; test $? -eq 143"),
            self.sh('kill "$(cat pid)" && while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.05; done'))), 0)

    def test_a_command_that_ends_the_launcher_ends_nothing_else(self):
        end = "for p in /proc/$PPID/task/*; do kill -{} ${{p##*/}}; done 2>/dev/null; true"
        steps = [self.sh(end.format("KILL")), self.sh(end.format("STOP")),
                 self.sh(f"echo after; touch {self.job_directory}/x; true")]
        done = self.assert_end(self.run_steps(*steps * 5), 0)
        self.assertEqual({step["output"].splitlines()[0] for step in done.steps[2::3]}, {"after"})
        self.assertFalse((self.job_directory / "x").exists())

    def test_the_launcher_ends_with_the_job(self):
        done, _ = self.shell("true")
        self.assert_end(done, 0)
        left = subprocess.run(["pgrep", "-f", str(self.job_directory)], stdout=subprocess.PIPE).stdout
        self.assertEqual(left, b"")


# Left by a step: once its parent has ended, stops or traces every other child of the runner, and notes what it could.
MEDDLER = """
import ctypes, os, signal, sys
runner, libc = os.getppid(), ctypes.CDLL(None)
if os.fork():
    os._exit(0)
os.setsid()
os.closerange(0, 3)
while os.getppid() != runner:
    pass
noted = set()
def note(pid, word):
    if (pid, word) not in noted:
        noted.add((pid, word))
        with open("noted", "a") as file:
            file.write(word + " ")
while True:
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            state, parent = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[:2]
            if state == "Z" or int(parent) != runner or pid == os.getpid():  # of the step that left us, for example
                continue
            if sys.argv[1] == "stop":
                name = open(f"/proc/{pid}/comm").read()
                os.kill(pid, signal.SIGSTOP)
                if name != "sba\\n":  # a child before its exec is in no domain yet: the runner continues it
                    note(pid, "stopped")
            elif (pid, "traced") not in noted and libc.ptrace(16, pid, None, None) == 0:
                note(pid, "traced")
        except OSError:
            pass
"""


class Meddlers(ConfinedCase):
    def meddled(self, what, *steps, **fields):
        """Gives the outcome, and what a process that meddles could do."""
        self.put("meddler.py", MEDDLER)
        done = self.run_steps(self.step("run_command", argv=["/usr/bin/python3", "meddler.py", what]), *steps, **fields)
        noted = self.workspace / "noted"
        return done, noted.read_text() if noted.exists() else ""

    def test_a_step_that_is_stopped_or_traced_times_out(self):
        for what in ("stop", "trace"):
            with self.subTest(what):
                slow = sba.slowness()
                done, noted = self.meddled(what, self.sh("sleep 30", timeout_seconds=1))
                self.assertIn({"stop": "stopped", "trace": "traced"}[what], noted)
                self.assertEqual((done.exit, done.steps[1]["status"]), (124, "timeout"), done.result)
                self.assertLess(done.steps[1]["duration_ms"], 4500 * max(slow, sba.slowness()))
                (self.workspace / "noted").unlink()

    @unittest.skipUnless(ABI, "this kernel has no Landlock")
    def test_a_check_cannot_be_stopped_or_traced(self):
        for what in ("stop", "trace") if ABI >= 6 else ("trace",):
            with self.subTest(what):
                checks = [{"criterion": f"exit {code}", "check": {"shell": f"sleep 0.5; exit {code}"}}
                          for code in (0, 1)]
                done, noted = self.meddled(what, context={"acceptance_criteria": checks})
                self.assertEqual(done.verdicts, [(True, "check"), (False, "check")])
                self.assertEqual((done.exit, noted), (1, ""))


class Kernels(ConfinedCase):
    def test_kernels_without_landlock(self):
        for number in ("ENOSYS", "EPERM"):
            done, said = self.shell("echo works", wrapper=sba.without("landlock", number))
            self.assertEqual((done.exit, said, done.confinement), (0, "works\n", {"writes": "none"}))

    def test_a_job_is_refused_where_it_is_required_and_cannot_be_had(self):
        done, _ = self.shell("echo works > ran", wrapper=sba.without("landlock"), env={"SBA_CONFINE": "require"})
        self.assert_end(done, 2, "environment_invalid", "SBA_CONFINE=require")
        self.assertFalse((self.workspace / "ran").exists())

    @unittest.skipUnless(ABI, "this kernel has no Landlock")
    def test_require_with_landlock(self):
        done, _ = self.shell("true", env={"SBA_CONFINE": "require"})
        self.assertEqual((done.exit, done.confinement["abi"]), (0, ABI))

    def test_an_unknown_mode_is_refused(self):
        done = self.run_steps(env={"SBA_CONFINE": "yes"})
        self.assertEqual(done.exit, 2)
        self.assertIn(b"invalid value 'yes' for SBA_CONFINE; it must be one of auto, off, require", done.stderr)

    @unittest.skipUnless(ABI and shutil.which("strace") and not sba.IS_DEV, "wants Landlock, strace and a release")
    def test_landlock_version_1(self):
        old = [*sba.injecting("444", "retval=1:when=1"), "-f"]
        done, _ = self.shell(f"echo x > {self.job_directory}/other; echo y > here && mv here there && cat there",
                             wrapper=old)
        self.assert_end(done, 0)
        self.assertEqual((done.steps[0]["result"]["stdout"], done.confinement["abi"]), ("y\n", 1))
        self.assertEqual(len(done.confinement["partial"]), 2)
        self.assertFalse((self.job_directory / "other").exists())


sba.main(__name__)
