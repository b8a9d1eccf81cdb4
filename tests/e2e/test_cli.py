# SPDX-License-Identifier: Apache-2.0
"""The command line from outside: modes, usage errors, environment, scripts and the prompt."""
import json
import os
import signal
import subprocess
import time

import jsonschema

import sba
from sba import SandboxCase


class CommandLineTest(SandboxCase):
    def run_sba(self, *arguments, stdin=b"", env=None, timeout=60):
        environment = {"PATH": "/usr/bin:/bin", **(env or {})}
        return subprocess.run([sba.BINARY, *arguments], input=stdin, capture_output=True, env=environment, timeout=timeout,
                              cwd=self.root, **sba.ordinary_user())

    def test_version_names_what_is_inside(self):
        done = self.run_sba("--version")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        for name in (b"cynode-sba ", b"Lua 5.4", b"lua-cjson", b"LPeg", b"OpenSSL", b"PCRE2"):
            self.assertIn(name, done.stdout)

    def test_help_fits_a_screen(self):
        lines = self.run_sba("--help").stdout.decode().splitlines()
        self.assertLessEqual(len(lines), 40)
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_a_usage_error_is_one_line_and_leaves_no_result(self):
        for arguments in (["--jop", "x"], ["--job"], ["--version", "--help"], ["stray"], ["--schema", "x"], ["--resume", "--result=-"],
                          ["--replay"], ["--replay", "x", "--resume"]):
            done = self.run_sba("--result", str(self.result_path), *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertEqual(done.stderr.count(b"\n"), 1)
            self.assertTrue(done.stderr.startswith(b"cynode-sba: "))
            self.assertFalse(self.result_path.exists())

    def test_root_may_ask(self):
        if not sba.UID:
            self.skipTest("wants root")
        for arguments in (["--version"], ["--help"], ["--schema"], ["--lua", "-e", "return"], ["--validate", "-"]):
            done = subprocess.run([sba.BINARY, *arguments], input=b"{}", capture_output=True, timeout=60)
            self.assertNotIn(b"does not run as root", done.stdout + done.stderr)

    def test_schemas_are_valid_and_hold_what_they_describe(self):
        schemas = {}
        for what in ("job", "result", "steps"):
            schemas[what] = json.loads(self.run_sba("--schema", what).stdout)
            self.assertEqual(schemas[what]["$schema"], "https://json-schema.org/draft/2020-12/schema")
            jsonschema.Draft202012Validator.check_schema(schemas[what])
        job = self.job(self.step("write_file", path="a", content="x"), self.step("read_file", path="none"),
                       self.step("list_tree", path="."))
        jsonschema.Draft202012Validator(schemas["job"]).validate(job)
        outcome = self.run_job(job)
        jsonschema.Draft202012Validator(schemas["result"]).validate(outcome.result)
        jsonschema.Draft202012Validator(schemas["result"]).validate(self.run_job(b"{").result)
        job["surprise"] = True
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schemas["job"]).validate(job)
        self.assertEqual(self.run_sba("--schema").stdout, self.run_sba("--schema", "job").stdout)

    def test_validate_tells_every_error(self):
        job = self.job(self.step("none"), surprise=1)
        del job["job_id"]
        done = self.run_sba("--validate", "-", stdin=json.dumps(job).encode())
        self.assertEqual(done.returncode, 2)
        lines = done.stdout.decode().splitlines()
        for pointer in ("/steps/0/type: ", "/surprise: ", "/job_id: "):
            self.assertEqual(sum(line.startswith(pointer) for line in lines), 1, lines)
        path = self.put("job.json", json.dumps(self.job()))
        self.assertEqual(self.run_sba("--validate", str(path)).returncode, 0)
        self.assertEqual(self.run_sba("--validate", "--job", str(path)).returncode, 0)
        self.assertEqual(self.run_sba("--validate", env={"SBA_JOB_PATH": str(path)}).returncode, 0)
        self.assertEqual(self.run_sba("--validate", "none.json").returncode, 2)

    def test_job_on_stdin_result_on_stdout(self):
        job = json.dumps(self.job(self.step("write_file", path="a", content="x"))).encode()
        for arguments, env in ((["--stdin"], {}), ([], {"SBA_STDIN_STDOUT": "true", "SBA_RESULT_PATH": "/none/x"}),
                               (["--job", "-", "--result=-"], {})):
            done = self.run_sba(*arguments, "--workspace", str(self.workspace), stdin=job, env=env)
            self.assertEqual((done.returncode, json.loads(done.stdout)["status"]), (0, "success"))
            self.assertEqual([json.loads(line)["event"] for line in done.stderr.splitlines()][-1], "job.finished")
        self.assertEqual(os.listdir(self.job_folder), [])

    def test_variables_name_what_options_do_not(self):
        path = self.job_folder / "j"
        path.write_text(json.dumps(self.job(self.step("write_file", path="a", content="x"))))
        env = {"SBA_JOB_PATH": str(path), "SBA_RESULT_PATH": str(self.result_path), "CYNODE_WORKSPACE_DIR": str(self.workspace)}
        self.assertEqual(self.run_sba(env=env).returncode, 0)
        self.assertTrue((self.workspace / "a").exists())
        self.assertEqual(self.run_sba("-job", str(path), "-result=" + str(self.job_folder / "r"), env=env).returncode, 0)
        self.assertTrue((self.job_folder / "r").exists())

    def test_mode_from_the_environment(self):
        outcome = self.run_job(self.job(), env={"SBA_EXECUTION_MODE": "sideways"})
        self.assertEqual((outcome.exit, outcome.result["failure_code"]), (2, "schema_validation"))
        self.assertIn("SBA_EXECUTION_MODE", outcome.result["failure_message"])

    def test_idle_waits_for_sigterm_and_uses_no_time(self):
        process = subprocess.Popen([sba.BINARY, "--idle"], **sba.ordinary_user())
        time.sleep(1)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)


class LuaTest(SandboxCase):
    run_sba = CommandLineTest.run_sba

    def script(self, text):
        return str(self.put("script.lua", text))

    def test_scripts_get_their_arguments(self):
        path = self.script("print(arg[0], arg[1], #arg, ...) io.stdout:write(require 'native.bundle'.version)")
        done = self.run_sba("--lua", path, "one", "--two")
        self.assertEqual((done.returncode, done.stdout.split(b"\n")[0].decode()), (0, f"{path}\tone\t2\tone\t--two"))
        done = self.run_sba("--lua", "-e", "print(..., arg[1])", "x")
        self.assertEqual(done.stdout, b"x\tx\n")

    def test_scripts_may_set_globals(self):
        self.assertEqual(self.run_sba("--lua", "-e", "x = 1; require 'sba.job'; y = 2; print(x, y, z)").stdout, b"1\t2\tnil\n")

    def test_exit_statuses(self):
        for code, status in (("return 7", 0), ("os.exit(7)", 7), ("os.exit(true, true)", 0), ("error('oh no')", 1), ("syntax error", 1)):
            self.assertEqual(self.run_sba("--lua", "-e", code).returncode, status, code)
        self.assertEqual(self.run_sba("--lua", "none.lua").returncode, 1)
        done = self.run_sba("--lua", self.script("local function f() error('oh no') end\nf()"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"script.lua:1: oh no", done.stderr)
        self.assertIn(b"stack traceback", done.stderr)

    def test_a_signal_ends_a_script(self):
        process = subprocess.Popen([sba.BINARY, "--lua", "-e", "print('on') io.stdout:flush() while true do end"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 143)

    def test_the_prompt(self):
        lines = ["1 + 1", "= 'a', nil", "x = 5", "for i = 1, 2 do", "print(i * x)", "end", "error 'oh no'", "x +", "1", "]]", "x"]
        done = self.run_sba("--lua", stdin="\n".join(lines).encode())
        self.assertEqual(done.returncode, 0)
        out = done.stdout.decode()
        for words in ("> 2\n", "> a\tnil\n", ">> 5\n10\n", "> 5\n"):
            self.assertIn(words, out)
        self.assertIn(b"oh no", done.stderr)
        self.assertIn(b"syntax error", done.stderr)


if __name__ == "__main__":
    sba.main()
