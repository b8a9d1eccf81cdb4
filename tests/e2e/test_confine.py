# SPDX-License-Identifier: Apache-2.0
"""What commands can reach: the kernel keeps them from the job directory, the token and the runner."""
import os
import pathlib
import shutil
import subprocess
import unittest

import sba

TOOLS = os.environ["SBA_TOOLS"]
TOKEN = "a-token-that-must-not-be-seen"
# Directories outside of what commands may write, where a test can have its job directory.
PLACES = ["/srv", "/opt", str(pathlib.Path(TOOLS).resolve())]
WRITABLE = ("/tmp/", "/var/tmp/", "/dev/", "/proc/")
PLACE = next((name for name in PLACES if os.access(name, os.W_OK) and not f"{name}/".startswith(WRITABLE)), None)
ABI = int(sba.run("--lua", "-e", "print(require 'native.confine'.abi())").stdout)


@unittest.skipUnless(PLACE, "no directory outside of /tmp can be written")
class ConfinedCase(sba.SandboxCase):
    place = PLACE

    def setUp(self):
        super().setUp()
        self.secret = self.root / "secrets"
        self.secret.mkdir()
        self.token = self.secret / "token"
        self.token.write_text(TOKEN, encoding="utf-8")
        self.give(self.secret, self.token)

    def shell(self, script, *more, **options):
        """Runs a script as the only step; gives its outcome and what it printed."""
        done = self.run_job(self.job(self.step("run_command", shell=script), **options.pop("fields", {})), *more, **options)
        return done, done.result["steps"][0].get("output", "")

    def assert_untouched(self, done):
        """The result is the runner's own, and so is all that lies beside it."""
        self.assertEqual(done.result["job_id"], "job-1")
        self.assertEqual([step["type"] for step in done.result["steps"]], ["run_command"])
        names = {entry.name for entry in self.job_directory.iterdir()}
        self.assertLessEqual(names, {"job.json", "result.json", "todo.json", "journal.jsonl", "artifacts"}, names)


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
    "clones a file over it": "python3 -c 'import fcntl; fcntl.ioctl(open(\"{job}/result.json\"), 0x40049409, open(\"/etc/passwd\").fileno())'",
    "makes it immutable": "python3 -c 'import array, fcntl; fcntl.ioctl(open(\"{job}/result.json\"), 0x40086602, array.array(\"L\", [16]))'",
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
                self.assertEqual(done.result["confinement"]["writes"], "landlock")

    def test_the_same_attacks_hit_where_it_is_off(self):
        done, said = self.shell(f"echo x > {self.job_directory}/other && echo done it", env={"SBA_CONFINE": "off"})
        self.assertIn("done it", said)
        self.assertEqual(done.result["confinement"], {"writes": "none"})

    def test_what_an_earlier_step_left_cannot_either(self):
        late = f"(sleep 0.3; echo x > {self.job_directory}/other; echo tried > tried) >/dev/null 2>&1 &"
        done = self.run_job(self.job(self.step("run_command", shell=late), self.step("run_command", shell="sleep 1; cat tried")))
        self.assertEqual(done.result["steps"][1]["output"], "tried\n")
        self.assertFalse((self.job_directory / "other").exists())

    def test_artifacts_workspace_and_the_shared_directories_are_writable(self):
        memory = [path for path in ["/dev/shm"] if os.path.isdir(path) and os.stat(path).st_mode & 0o2]  # a chroot may have none for all
        places = " ".join(['.', '"$CYNODE_ARTIFACTS_DIR"', "/tmp", "/var/tmp", *memory])
        done, said = self.shell(f'for d in {places}; do f=$(mktemp -p "$d") && rm "$f" && echo ok; done')
        self.assertEqual((done.exit, said), (0, "ok\n" * (4 + len(memory))))
        self.assertNotIn("partial", done.result["confinement"])
        self.assertEqual(done.events("confinement.partial"), [])
        self.assertEqual(done.events("job.accepted")[0]["confinement"], done.result["confinement"])

    def test_another_directory_is_writable_where_the_operator_says_so(self):
        more = self.root / "more"
        more.mkdir()
        self.give(more)
        script = f"echo x > {more}/file"
        done, _ = self.shell(script)
        self.assertEqual(done.exit, 1)
        self.assertIn(f"SBA_WRITABLE={more} would allow it", done.result["steps"][0]["error"])
        self.assertIn(f"commands may not write {more}", done.result["failure_message"])
        done, _ = self.shell(script, env={"SBA_WRITABLE": f"/nowhere:{more}"})
        self.assertEqual(done.exit, 0)
        self.assertIn(str(more), done.result["confinement"]["writable"])

    def test_what_its_user_may_not_write_is_not_put_down_to_the_rules(self):
        closed = self.root / "closed"
        closed.mkdir(mode=0o555)
        self.give(closed)
        done, _ = self.shell(f"echo x > {closed}/file")
        self.assertEqual(done.exit, 1)
        self.assertNotIn("SBA_WRITABLE", done.result["failure_message"])

    def test_the_job_directory_is_named_where_a_command_could_not_write_it(self):
        done, _ = self.shell(f"touch {self.job_directory}/other")
        self.assertIn(f"{self.job_directory} is written by the runner alone", done.result["failure_message"])

    def test_a_job_directory_below_a_writable_one_is_said(self):
        done, _ = self.shell("true", env={"SBA_WRITABLE": str(self.root)})
        self.assertEqual(done.result["confinement"]["partial"],
                         [f"the job directory {self.job_directory} lies below {self.root}, which commands may write"])
        self.assertEqual(len(done.events("confinement.partial")), 1)


@unittest.skipUnless(ABI, "this kernel has no Landlock")
class Token(ConfinedCase):
    def read(self, script, **more):
        return self.shell(script, env={"SBA_MCP_TOKEN_FILE": str(self.token), **more})

    def test_no_command_opens_its_file(self):
        (self.workspace / "link").symlink_to(self.token)
        for name in (self.token, f"/proc/self/root{self.token}", "link", f"../secrets/{self.token.name}", f"{self.secret}/./token"):
            done, said = self.read(f"cat {name}; exit 0")
            self.assertIn("Permission denied", said, name)
            self.assertNotIn(TOKEN, done.result_bytes.decode())
        for script in (f"ln {self.token} copy && cat copy", f"cp {self.token} copy && cat copy", f"mv {self.token} copy && cat copy",
                       f"mv {self.secret} {self.root}/other && cat {self.root}/other/token"):
            done, said = self.read(script)
            self.assertNotIn(TOKEN, said, script)
            self.assertNotEqual(done.exit, 0, script)
        self.assertEqual(self.token.read_text(encoding="utf-8"), TOKEN)

    def test_everything_else_can_be_read(self):
        (self.secret / "other").write_text("readable", encoding="utf-8")
        done, said = self.read(f"cat {self.secret}/other /etc/hostname /proc/self/status >/dev/null && head -c1 /dev/zero | wc -c")
        self.assertEqual((done.exit, said.strip()), (0, "1"))

    def test_one_below_a_writable_directory_is_said(self):
        done, _ = self.read("true", SBA_WRITABLE=str(self.secret))
        self.assertIn(f"the agent's token {self.token} can be read by commands", done.result["confinement"]["partial"][0])


# Every way to send a signal to a process or to one of its threads.
KILLER = """
import ctypes, os, signal, sys
runner, libc = os.getppid(), ctypes.CDLL(None)
assert "cynode-sba" in open(f"/proc/{runner}/comm").read()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for number in (signal.SIGTERM, signal.SIGKILL):
    for send in (lambda: os.kill(runner, number), lambda: signal.pidfd_send_signal(os.pidfd_open(runner), number),
                 lambda: os.killpg(os.getpgid(runner), number)):
        try:
            send()
            print("sent")
        except PermissionError:
            pass
    for task in os.listdir(f"/proc/{runner}/task"):
        if libc.syscall(234, runner, int(task), number) == 0 or libc.syscall(200, int(task), number) == 0:
            print("sent to", task)
os.kill(-1, signal.SIGTERM)
print("alive")
"""


@unittest.skipUnless(ABI >= 6, "this kernel's Landlock does not confine signals")
class Signals(ConfinedCase):
    def test_no_command_ends_the_runner(self):
        self.put("killer.py", KILLER)
        done = self.run_job(self.job(self.step("run_command", argv=["/usr/bin/python3", "killer.py"]),
                                     self.step("run_command", shell="kill -9 -1; true"), self.step("run_command", shell="echo after")))
        self.assertEqual((done.exit, [step["status"] for step in done.result["steps"]]), (0, ["success"] * 3))
        self.assertEqual(done.result["steps"][0]["output"], "alive\n")

    def test_commands_signal_each_other(self):
        done = self.run_job(self.job(
            self.step("run_command", shell="sleep 300 >/dev/null 2>&1 & echo $! > pid"),
            self.step("run_command", shell="sleep 300 & kill $!; wait $!; test $? -eq 143"),
            self.step("run_command", shell='kill "$(cat pid)" && sleep 0.2 && ! kill -0 "$(cat pid)"')))
        self.assertEqual(done.exit, 0, done.result["failure_message"])

    def test_a_command_that_ends_the_launcher_ends_nothing_else(self):
        end = "for p in $(ps -o pid= -C cynode-sba); do kill -{} $p; done 2>/dev/null; true"
        steps = [self.step("run_command", shell=end.format("KILL")), self.step("run_command", shell=end.format("STOP")), self.step("run_command", shell=f"echo after; touch {self.job_directory}/x; true")]
        done = self.run_job(self.job(*steps * 5))
        self.assertEqual(done.exit, 0, done.result["failure_message"])
        self.assertEqual({step["output"].splitlines()[0] for step in done.result["steps"][2::3]}, {"after"})
        self.assertFalse((self.job_directory / "x").exists())

    def test_the_launcher_ends_with_the_job(self):
        done, _ = self.shell("true")
        self.assertEqual(done.exit, 0)
        left = subprocess.run(["pgrep", "-f", str(self.job_directory)], stdout=subprocess.PIPE, check=False).stdout
        self.assertEqual(left, b"")


class Kernels(ConfinedCase):
    def test_without_landlock_all_is_as_before(self):
        for number in ("ENOSYS", "EPERM"):
            wrapper = [f"{TOOLS}/without", "landlock", number]
            done, said = self.shell("echo works", wrapper=wrapper)
            self.assertEqual((done.exit, said, done.result["confinement"]), (0, "works\n", {"writes": "none"}))

    def test_a_job_is_refused_where_it_is_required_and_cannot_be_had(self):
        done, _ = self.shell("echo works > ran", wrapper=[f"{TOOLS}/without", "landlock", "ENOSYS"], env={"SBA_CONFINE": "require"})
        self.assertEqual((done.exit, done.result["failure_code"]), (2, "environment_invalid"))
        self.assertIn("SBA_CONFINE=require", done.result["failure_message"])
        self.assertFalse((self.workspace / "ran").exists())

    @unittest.skipUnless(ABI, "this kernel has no Landlock")
    def test_required_and_there(self):
        done, _ = self.shell("true", env={"SBA_CONFINE": "require"})
        self.assertEqual((done.exit, done.result["confinement"]["abi"]), (0, ABI))

    def test_an_unknown_mode_is_refused(self):
        done = self.run_job(self.job(), env={"SBA_CONFINE": "yes"})
        self.assertEqual(done.exit, 2)
        self.assertIn(b"invalid value 'yes' for SBA_CONFINE; it must be one of auto, off, require", done.stderr)

    @unittest.skipUnless(ABI and shutil.which("strace") and not sba.IS_DEV, "wants Landlock, strace and the release build")
    def test_version_1(self):
        old = [*sba.injecting("444", "retval=1:when=1"), "-f"]
        done, _ = self.shell(f"echo x > {self.job_directory}/other; echo y > here && mv here there && cat there", wrapper=old)
        self.assertEqual(done.exit, 0, done.result["failure_message"])
        self.assertEqual((done.result["steps"][0]["result"]["stdout"], done.result["confinement"]["abi"]), ("y\n", 1))
        self.assertEqual(len(done.result["confinement"]["partial"]), 3)
        self.assertFalse((self.job_directory / "other").exists())


if __name__ == "__main__":
    sba.main()
