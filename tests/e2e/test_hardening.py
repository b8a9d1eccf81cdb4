# SPDX-License-Identifier: Apache-2.0
"""What a hostile command or workspace gets of the runner: nothing."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import termios
import unittest

import sba

PYTHON = "/usr/bin/python3"  # Debian's: any user may run it
HERE = pathlib.Path(__file__).parent
TOOLS = os.environ["SBA_TOOLS"]
TOKEN = "a-token-that-must-not-be-seen"
# What an unhardened process of the same user would be: it lets anyone trace it, as the kernel may be set to ask for that.
SLEEPER = "import ctypes, time; ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0); print(flush=True); time.sleep(600)"


class Children(sba.SandboxCase):
    def probe(self, *more, **options):
        """Runs the prober as a step and returns what it found out."""
        self.put("prober.py", (HERE / "prober.py").read_bytes())
        done = self.run_job(self.job(self.step("run_command", command=PYTHON, args=["prober.py"])), *more, **options)
        self.assertEqual(done.exit, 0, done.result_bytes or done.stderr)
        return json.loads(done.result["steps"][0]["result"]["stdout"]), done

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
        status = self.run_job(self.job(self.step("run_command", command="grep", args=["^Sig[BI]", "/proc/self/status"])))
        internal = 1 << 31 | 1 << 32  # glibc keeps signals 32 and 33 for itself
        for line in status.result["steps"][0]["result"]["stdout"].splitlines():
            self.assertEqual(int(line.split()[1], 16) & ~internal, 0, line)

    def test_get_no_descriptor_of_the_runner_or_of_its_parent(self):
        for wrapper in [[], *[sba.injecting("close_range", "error=ENOSYS")] * bool(shutil.which("strace"))]:
            with tempfile.TemporaryFile() as file:
                found, _ = self.probe(pass_fds=[file.fileno()], wrapper=wrapper)
            self.assertEqual(found["descriptors"], [0, 1, 2], wrapper)

    @unittest.skipUnless(sba.UID and shutil.which("strace"), "wants root and strace")
    def test_every_descriptor_is_opened_so_that_it_ends_with_exec(self):
        """Root's strace, for nobody else could see the flags."""
        self.put("a", "1\n")
        os.symlink("a", self.workspace / "link")
        diff = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
        job = self.job(self.step("apply_unified_diff", diff=diff), self.step("write_file", path="d/b", content="x", mode="0600"),
                       self.step("read_file", path="link"), self.step("list_tree"), self.step("search_files", pattern="x"),
                       self.step("run_command", shell="cat; touch $CYNODE_ARTIFACTS_DIR/x", stdin="x"))
        for wrapper in ([], [f"{TOOLS}/without", "openat2", "ENOSYS"]):
            opens = "open,openat,openat2,pipe,pipe2,eventfd2,socket,memfd_create,dup,epoll_create1"
            trace = [*sba.strace(f"prctl,{opens}", log=self.root / "trace"), *wrapper]
            done = self.run_job(job, "--user", str(sba.UID), wrapper=trace, **sba.AS_ROOT)
            self.assertEqual(done.exit, 0, done.result)
            ours = (self.root / "trace").read_text().split("PR_SET_DUMPABLE", 1)[1].splitlines()[1:]
            # The dev build reads its own Lua from disk, with fopen.
            opened = [line for line in ours if " = -1 " not in line and "(" in line and "prctl(" not in line and '.lua"' not in line]
            self.assertGreater(len(opened), 20)
            self.assertEqual([line for line in opened if "CLOEXEC" not in line], [])
            new = [line for line in opened if ".sba-" in line]  # nobody may read them before they have their mode
            self.assertEqual([", 0600)" in line for line in new], [True, True], new)
            self.put("a", "1\n")

    def test_get_the_environment_without_secrets(self):
        found, done = self.probe(env={"SBA_MCP_TOKEN": TOKEN, "SBA_MCP_TOKEN_FILE": "/" + TOKEN, "KEPT": "kept", "HTTP_PROXY": "http://proxy"})
        self.assertEqual(found["environment"]["KEPT"], "kept")
        self.assertEqual(found["environment"]["HTTP_PROXY"], "http://proxy")
        self.assertNotIn("SBA_MCP_TOKEN", found["environment"])
        self.assertNotIn("SBA_MCP_TOKEN_FILE", found["environment"])
        left = b"".join(path.read_bytes() for path in self.job_directory.iterdir() if path.is_file())
        self.assertNotIn(TOKEN.encode(), left + done.stdout + done.stderr)


class TheTerminal(sba.SandboxCase):
    def test_its_mode_is_restored_at_the_end(self):
        """A command can write to it, for /dev is writable, and change its mode."""
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        self.give(os.ttyname(slave))
        before = termios.tcgetattr(slave)
        change = self.step("run_command", shell=f"stty raw -echo -F {os.ttyname(slave)}; stty -a -F {os.ttyname(slave)}")
        done = self.run_job(self.job(change), wrapper=["setsid", "-cw"], stdin=slave)
        self.assertIn("-echo ", done.result["steps"][0]["output"])
        self.assertEqual((done.exit, termios.tcgetattr(slave)), (0, before))


class Workspace(sba.SandboxCase):
    """No file of the directory the runner starts in is ever loaded as a module."""

    def plant(self):
        marker = self.workspace / "loaded"
        lua = f'io.open("{marker}", "a"):write("x")\nreturn {{}}\n'
        for name in ("sba/main", "sba/cli", "sba/init", "sba/util/strict", "sba/util/json", "sba/steps/read_file", "sba/steps/evil",
                     "native/bundle", "native/file", "lpeg", "cjson", "re", "init"):
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
        job = self.job(self.step("read_file", path="a.txt"), self.step("list_tree", path="."))
        for env in ({}, hostile):
            done = self.run_job(job, env=env, cwd=self.workspace)
            self.assertEqual(done.exit, 0, done.stderr)
            self.assertFalse(marker.exists(), "a file of the workspace was loaded")
        wanted = self.run_job(self.job(self.step("evil")), env=hostile, cwd=self.workspace)
        self.assertEqual((wanted.exit, wanted.result["failure_code"]), (2, "schema_validation"))
        for option in ("--version", "--help", "--schema"):
            subprocess.run([sba.BINARY, option], cwd=self.workspace, env={**os.environ, **hostile}, check=True, stdout=subprocess.DEVNULL)
        self.assertFalse(marker.exists(), "a file of the workspace was loaded")


if __name__ == "__main__":
    sba.main()
