# SPDX-License-Identifier: Apache-2.0
"""What a hostile command or workspace gets of the runner: nothing."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import termios
import unittest

import sba
from servers import status

PYTHON = "/usr/bin/python3"  # Debian's: any user may run it
HERE = pathlib.Path(__file__).parent
TOKEN = "a-token-that-must-not-be-seen"
# What an unhardened process of the same user would be: it lets anyone trace it, for which the kernel may ask.
SLEEPER = """import ctypes, time
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0); print(flush=True); time.sleep(600)"""


class Children(sba.SandboxCase):
    def probe(self, *more, **options):
        self.put("prober.py", (HERE / "prober.py").read_bytes())
        done = self.run_job(self.job(self.run_command(PYTHON, args=["prober.py"])), *more, **options)
        self.assertEqual(done.exit, 0, done.result_bytes or done.stderr)
        return json.loads(done.steps[0]["result"]["stdout"]), done

    def test_cannot_look_into_the_runner(self):
        sleeper = subprocess.Popen([PYTHON, "-c", SLEEPER], stdout=subprocess.PIPE, **sba.ordinary_user())
        self.addCleanup(sleeper.stdout.close)
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        sleeper.stdout.readline()
        prober = self.put("prober.py", (HERE / "prober.py").read_bytes())
        control = json.loads(subprocess.run([PYTHON, prober, str(sleeper.pid)], stdout=subprocess.PIPE, check=True,
                                            **sba.ordinary_user()).stdout)["ways"]
        self.assertEqual(set(control.values()), {"allowed"}, f"the prober does not get into an open process: {control}")

        found, _ = self.probe()
        self.assertEqual(found["target"], "sba")
        for way, outcome in found["ways"].items():
            self.assertIn(outcome, ("EACCES", "EPERM"), way)

    def test_get_no_privileges_and_a_session_of_their_own(self):
        found, _ = self.probe()
        self.assertEqual(found["no_new_privs"], "1")
        self.assertTrue(found["session"])

    def test_get_signals_as_a_shell_would_give_them(self):
        # Python itself ignores SIGPIPE and SIGXFSZ, so the command is a shell's grep.
        status = self.run_steps(self.run_command("grep", args=["^Sig[BI]", "/proc/self/status"]))
        internal = 1 << 31 | 1 << 32  # glibc keeps signals 32 and 33 for itself
        for line in status.steps[0]["result"]["stdout"].splitlines():
            self.assertEqual(int(line.split()[1], 16) & ~internal, 0, line)

    def test_get_no_descriptor_of_the_runner_or_of_its_parent(self):
        for wrapper in [[], *[sba.injecting("close_range", "error=ENOSYS")] * bool(shutil.which("strace"))]:
            with tempfile.TemporaryFile() as file:
                found, _ = self.probe(pass_fds=[file.fileno()], wrapper=wrapper)
            self.assertEqual(found["descriptors"], [0, 1, 2], wrapper)

    @unittest.skipUnless(sba.UID and shutil.which("strace"), "wants root and strace")
    def test_every_descriptor_is_opened_so_that_it_ends_with_exec(self):
        # Root's strace, for nobody else could see the flags.
        self.put("a", "1\n")
        os.symlink("a", self.workspace / "link")
        diff = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
        job = self.job(self.apply_diff(diff), self.write_file("d/b", "x", mode="0600"),
                       self.read_file("link"), self.step("list_tree"), self.step("search_files", pattern="x"),
                       self.sh("cat; touch $CYNODE_ARTIFACTS_DIR/x", stdin="x"))
        for wrapper in ([], sba.without("openat2")):
            opens = "open,openat,openat2,pipe,pipe2,eventfd2,socket,memfd_create,dup,epoll_create1"
            trace = [*sba.strace(f"prctl,{opens}", log=self.root / "trace"), *wrapper]
            self.assert_end(self.run_job(job, "--user", str(sba.UID), wrapper=trace, **sba.AS_ROOT), 0)
            ours = (self.root / "trace").read_text().split("PR_SET_DUMPABLE", 1)[1].splitlines()[1:]
            # The dev build reads its own Lua from disk, with fopen.
            opened = [line for line in ours
                      if " = -1 " not in line and "(" in line and "prctl(" not in line and '.lua"' not in line]
            self.assertGreater(len(opened), 20)
            self.assertEqual([line for line in opened if "CLOEXEC" not in line], [])
            new = [line for line in opened if ".sba-" in line]  # nobody may read them before they have their mode
            self.assertEqual([", 0600)" in line for line in new], [True, True], new)
            self.put("a", "1\n")

    def test_get_the_environment_without_secrets(self):
        found, done = self.probe(env={"SBA_MCP_TOKEN": TOKEN, "SBA_MCP_TOKEN_FILE": "/" + TOKEN, "KEPT": "kept",
                                      "HTTP_PROXY": "http://proxy"}, wrapper=["/usr/bin/env", "-u", "PATH"])
        self.assertEqual((found["environment"]["KEPT"], found["environment"]["HTTP_PROXY"]), ("kept", "http://proxy"))
        self.assertEqual(found["environment"]["PATH"], "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        self.assert_lacks(found["environment"], "SBA_MCP_TOKEN", "SBA_MCP_TOKEN_FILE")
        left = b"".join(path.read_bytes() for path in self.job_directory.iterdir() if path.is_file())
        self.assertNotIn(TOKEN.encode(), left + done.stdout + done.stderr)


class TheTerminal(sba.SandboxCase):
    def test_its_mode_is_restored_at_the_end(self):
        # A command can write to it, for /dev is writable, and change its mode.
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        self.give(os.ttyname(slave))
        before = termios.tcgetattr(slave)
        change = self.sh(f"stty raw -echo -F {os.ttyname(slave)}; stty -a -F {os.ttyname(slave)}")
        done = self.run_job(self.job(change), wrapper=["setsid", "-cw"], stdin=slave)
        self.assertIn("-echo ", done.steps[0]["output"])
        self.assertEqual((done.exit, termios.tcgetattr(slave)), (0, before))


class Workspace(sba.SandboxCase):
    """No file of the directory the runner starts in is ever loaded as a module."""

    def plant(self):
        marker = self.workspace / "loaded"
        lua = f'io.open("{marker}", "a"):write("x")\nreturn {{}}\n'
        for name in ("sba/main", "sba/cli", "sba/init", "sba/util/humanize", "sba/util/json", "sba/steps/read_file",
                     "sba/steps/evil", "native/bundle", "native/file", "lpeg", "cjson", "re", "init"):
            self.put(f"{name}.lua", lua)
        source = self.put("evil.c", f'''
            #include <fcntl.h>
            __attribute__((constructor)) static void f(void) {{ open("{marker}", O_CREAT | O_WRONLY, 0600); }}''')
        for name in ("cjson.so", "lpeg.so", "native.so"):
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", self.workspace / name, source], check=True)
        return marker

    def test_is_no_source_of_modules(self):
        marker = self.plant()
        here = "./?.lua;./?/init.lua;;"
        hostile = {"LUA_PATH": here, "LUA_PATH_5_4": here, "LUA_CPATH": "./?.so;;", "LUA_CPATH_5_4": "./?.so;;",
                   "LUA_INIT": "@init.lua", "LUA_INIT_5_4": "@init.lua"}
        self.put("a.txt", "text\n")
        job = self.job(self.read_file("a.txt"), self.step("list_tree", path="."))
        for env in ({}, hostile):
            self.assert_end(self.run_job(job, env=env, cwd=self.workspace), 0)
            self.assertFalse(marker.exists(), "a file of the workspace was loaded")
        wanted = self.run_job(self.job(self.step("evil")), env=hostile, cwd=self.workspace)
        self.assert_end(wanted, 2, "schema_validation")
        for option in ("--version", "--help", "--schema"):
            subprocess.run([sba.BINARY, option], cwd=self.workspace, env={**os.environ, **hostile}, check=True,
                           stdout=subprocess.DEVNULL)
        self.assertFalse(marker.exists(), "a file of the workspace was loaded")


WHO = "id -u; id -g; id -G; grep -E '^(Cap(Prm|Eff|Bnd|Amb|Inh)|NoNewPrivs)' /proc/self/status"


@unittest.skipIf(os.geteuid() != 0, "wants root")
class Root(sba.SandboxCase):
    environment = {"CYNODE_JOB_ID": "job-1"}  # a refused runner has not read the job

    def run_as_root(self, *more, groups=(4, 27), job=None, **options):
        job = job or self.job(self.sh(WHO), self.write_file("new", "x"))
        return self.run_job(job, *more, **{**sba.AS_ROOT, "extra_groups": list(groups), **options})

    def assert_refused(self, done):
        self.assertEqual((done.exit, done.status, done.code), (2, "failure", "runs_as_root"), done.result)
        self.assertEqual((done.result["job_id"], done.steps), ("job-1", []), done.result)
        self.assertTrue(done.message)
        self.assertEqual(os.listdir(self.workspace), [])

    def assert_became(self, done, uid, gid):
        self.assertEqual(done.exit, 0, done.result or done.stderr)
        said = done.steps[0]["result"]["stdout"].split("\n")
        self.assertEqual(said[:3], [str(uid), str(gid), str(gid)])
        rights = dict(line.split(":\t") for line in said[3:] if line)
        self.assertEqual((rights["CapEff"], rights["CapPrm"], rights["NoNewPrivs"]), ("0" * 16, "0" * 16, "1"))
        owner = (self.workspace / "new").stat()
        self.assertEqual((owner.st_uid, owner.st_gid), (uid, gid))
        owner = self.result_path.stat()
        self.assertEqual((owner.st_uid, owner.st_gid), (uid, gid))

    def test_is_refused(self):
        self.assert_refused(self.run_as_root())

    @unittest.skipUnless(sba.may("unshare", "--user", "--map-root-user", "true"), "no user namespace can be made here")
    def test_is_refused_in_a_user_namespace(self):
        wrapper = ["unshare", "--user", "--map-root-user"]
        self.assert_refused(self.run_steps(self.write_file("new", "x"), wrapper=wrapper))

    def test_is_refused_where_only_the_real_user_is_root(self):
        # As a program with the set-user-id bit is.
        script = ("import os, sys; user = int(sys.argv[1]); os.setresgid(user, user, user); "
                  "os.setresuid(0, user, user); os.execv(sys.argv[2], sys.argv[2:])")
        done = self.run_as_root(wrapper=["/usr/bin/python3", "-c", script, str(sba.UID)], groups=())
        self.assertEqual(done.code, "runs_as_root")
        if not sba.IS_DEV:  # where LeakSanitizer may not look at such a process and says so by the exit status
            self.assert_refused(done)

    def test_is_refused_where_it_could_be_had_back(self):
        # With these securebits a process keeps root's rights as it becomes somebody else.
        done = self.run_as_root("--user", str(sba.UID), wrapper=["setpriv", "--securebits=+no_setuid_fixup", "--"])
        self.assert_refused(done)
        self.assertIn("could be undone", done.message)

    def test_becomes_whom_it_is_told_to(self):
        uid = sba.UID
        for user, gid in ((f"{uid}", uid), (f"{uid}:{uid}", uid), (f"{uid}:7", 7)):
            with self.subTest(user=user):
                (self.workspace / "new").unlink(missing_ok=True)
                self.result_path.unlink(missing_ok=True)
                self.assert_became(self.run_as_root("--user", user), uid, gid)

    def test_becomes_a_user_of_passwd_with_its_group(self):
        for directory in (self.job_directory, self.workspace):
            os.chown(directory, 65534, 65534)
        self.assert_became(self.run_as_root("--user", "nobody"), 65534, 65534)

    def test_takes_the_user_from_the_environment_and_the_option_first(self):
        self.assert_became(self.run_as_root(env={"SBA_USER": f"{sba.UID}:7"}), sba.UID, 7)
        self.result_path.unlink()
        (self.workspace / "new").unlink()
        self.assert_became(self.run_as_root("--user", f"{sba.UID}:8", env={"SBA_USER": "no-such-user"}), sba.UID, 8)

    def test_becomes_the_user_before_it_reads_the_job(self):
        path = self.job_directory / "job.json"
        process = self.start(self.job(), "--user", str(sba.UID), **sba.AS_ROOT)
        process.communicate()
        self.assertEqual(process.returncode, 0)
        before = self.result_path.read_bytes()
        path.chmod(0o600)
        os.chown(path, 0, 0)
        done = subprocess.run([sba.BINARY, *self.arguments(), "--user", str(sba.UID)], capture_output=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b"Permission denied", done.stderr)
        self.assertEqual(self.result_path.read_bytes(), before, "a job that cannot be opened leaves what stands")

    def test_a_user_that_is_none_is_refused(self):
        for user in ("0", "0:5", "root", "no-such-user", f"{sba.UID}:no-such-group", ":", f"{sba.UID}:", ":5", "-1",
                     "4294967295", "1x", "18446744073709551616", "1 ", "1:2:3"):
            with self.subTest(user=user):
                self.result_path.unlink(missing_ok=True)
                done = self.run_as_root("--user", user)
                self.assertEqual((done.exit, done.status, done.steps), (2, "failure", []), done.result)
                self.assertIn("--user", done.message)
                if user.startswith(f"{sba.UID}:"):
                    self.assertIn("is not a number; write UID:GID", done.message)
                self.assertEqual(os.listdir(self.workspace), [])

    def test_may_ask_and_check(self):
        job = self.put("job.json", json.dumps(self.job()))
        for arguments in (["--version"], ["--help"], ["--schema"], ["--validate", str(job)], ["--lua", "-e", "return"]):
            self.assertEqual(sba.run(*arguments, **sba.AS_ROOT).returncode, 0)


class Ordinary(sba.SandboxCase):
    def test_user_may_name_itself(self):
        uid, gid = (sba.UID, sba.GID) if sba.UID else (os.getuid(), os.getgid())
        done = self.run_job(self.job(self.sh("id -u")), "--user", f"{uid}:{gid}")
        self.assertEqual((done.exit, done.steps[0]["result"]["stdout"]), (0, f"{uid}\n"))

    def test_user_cannot_become_another(self):
        done = self.run_job(self.job(self.sh("id -u")), "--user", "12345")
        self.assertEqual((done.exit, done.status, done.steps), (2, "failure", []), done.result)


STEPS = [("write_file", {"path": "notes/a.txt", "content": "one\ntwo\n"}), ("read_file", {"path": "notes/a.txt"}),
         ("apply_unified_diff",
          {"diff": "--- a/notes/a.txt\n+++ b/notes/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"}),
         ("search_files", {"pattern": "th[r]ee"}), ("list_tree", {"path": "."})]


@unittest.skipIf(sba.IS_DEV, "the dev build is linked to Debian's libraries")
class Release(sba.SandboxCase):
    @staticmethod
    def readelf(*options):
        return subprocess.run(["readelf", "-W", *options, sba.BINARY], capture_output=True, text=True,
                              check=True).stdout

    def test_is_static_and_small(self):
        headers = self.readelf("-l", "-d")
        self.assert_lacks(headers, "INTERP", "NEEDED")
        self.assertLessEqual(os.path.getsize(sba.BINARY), 5_000_000)

    def test_is_a_hardened_pie(self):
        headers, sections = self.readelf("-h", "-l", "-d"), self.readelf("-S")
        self.assertRegex(headers, r"Type:\s+DYN")
        self.assertRegex(headers, r"GNU_STACK\s.* RW ")
        self.assertIn("GNU_RELRO", headers)
        self.assertRegex(headers, r"FLAGS.*BIND_NOW")
        self.assertNotIn("TEXTREL", headers)
        segments = re.findall(r"^ +LOAD +\S+ +0x(\w+) +\S+ +\S+ +0x(\w+) +([RWE ]{3}) ", headers, re.MULTILINE)
        flags = [permissions.replace(" ", "") for _, _, permissions in segments]
        self.assert_lacks(flags, "RWE", "WE")
        for name, wanted in ((".text", "RE"), (".rodata", "R"), (".data", "RW")):
            address = int(re.search(rf" \{name} +\w+ +(\w+)", sections)[1], 16)
            at, = [i for i, (start, size, _) in enumerate(segments) if 0 <= address - int(start, 16) < int(size, 16)]
            self.assertEqual(flags[at], wanted, name)

    @unittest.skipIf(os.geteuid() != 0, "chroot wants root")
    def test_runs_in_an_empty_root(self):
        root = self.root / "root"
        for directory in (root, root / "job", root / "workspace"):
            self.folder(directory)
        shutil.copy(sba.BINARY, root / "cynode-sba")
        job = self.job(*(self.step(type, **arguments) for type, arguments in STEPS))
        (root / "job/job.json").write_text(json.dumps(job))
        done = subprocess.run(["/usr/sbin/chroot", f"--userspec={sba.UID}:{sba.GID}", "--groups=", root, "/cynode-sba"],
                              env={}, stdin=subprocess.DEVNULL, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads((root / "job/result.json").read_bytes())
        self.assertEqual([step["status"] for step in result["steps"]], ["success"] * len(STEPS))
        self.assertEqual((root / "workspace/notes/a.txt").read_text(), "one\nthree\n")


@sba.wants("strace")
@unittest.skipIf(sba.IS_DEV, "what the sanitizers and the loader of the dev build open is not ours")
class NoSocket(sba.SandboxCase):
    """Without an address, the runner (not its commands) makes no socket, and reads nothing that leads to one."""

    def trace(self, job, *more, env=None):
        log = self.put(self.root / "trace")
        log.chmod(0o666)
        wrapper = ["strace", "-qq", "-o", str(log), "-e", "trace=network,openat,open,execve"]
        # The runner is closed to other processes of its user: only root's strace can read the names that it opens.
        process = self.start(job, *more, wrapper=[*wrapper, *sba.AS_USER], env=env, **sba.AS_ROOT)
        process.communicate(timeout=60)
        return process.returncode, log.read_text().rpartition("execve(")[2].partition("\n")[2]

    def check(self, text):
        lines = [line for line in text.splitlines() if not line.startswith(("open(", "openat(", "---", "+++"))]
        self.assertEqual(lines, [])
        self.assertRegex(text, "(?m)^open")  # strace saw it work
        if sba.UID:
            self.assertIn("job.json", text)
            # Where commands may write: confinement opens these directories, and reads nothing in them.
            opened = set(re.findall(r'(?m)^open[^"]*"(/[^"]*)"', text)) - {"/dev", "/dev/null", "/proc", "/tmp",
                                                                           "/var/tmp"}
            others = {path for path in opened if not path.startswith((str(self.root), "/proc/", "/sys/fs/cgroup/"))}
            of_a_run = re.compile(r"/tmp/cynode-sba-[0-9a-f]+(-\d+){3}(/\d+\.json)?")
            reports = set(filter(of_a_run.fullmatch, others))
            self.assertEqual(others - reports, set())
            self.assertLessEqual(len({path.split("/")[2] for path in reports}), 1, "one for the reports of workers")

    def test_whatever_the_job(self):
        jobs = {
            0: self.job(*(self.step(type, **arguments) for type, arguments in STEPS),
                        self.sh("echo x > $CYNODE_ARTIFACTS_DIR/a"), context={"skill_ids": ["gap"]}),
            1: self.job(self.step("call_tool", tool="help.get")),
            2: {**self.job(), "surprise": 1},
            124: self.job(self.sh("sleep 9"), max_runtime_seconds=1),
        }
        for wanted, job in jobs.items():
            code, text = self.trace(job)
            self.assertEqual(code, wanted)
            self.check(text)

    def test_proxies_alone_are_no_reason(self):
        code, text = self.trace(self.job(),
                                env={"HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"})
        self.assertEqual(code, 0)
        self.check(text)

    def test_the_trace_would_show_one(self):
        server = self.closing(status.Server(204))
        code, text = self.trace(self.job(), env={"SBA_JOB_STATUS_URL": server.url})
        self.assertEqual(code, 0)
        self.assertIn("socket(", text)


sba.main(__name__)
