# SPDX-License-Identifier: Apache-2.0
"""The command line from outside: modes, usage errors, environment, and scripts."""
import json
import os
import shutil
import signal
import subprocess
import unittest

import jsonschema

import sba
from sba import SandboxCase


class CommandLineTest(SandboxCase):
    def run_sba(self, *arguments, **options):
        return sba.run(*arguments, cwd=self.root, **options)

    def test_version_names_what_is_inside(self):
        done = self.run_sba("--version")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assert_says(done.stdout, b"cynode-sba ", b"Lua 5.4", b"lua-cjson", b"LPeg", b"OpenSSL", b"PCRE2")

    def test_a_usage_error_is_one_line_and_leaves_no_result(self):
        for arguments in ("--jop x", "--job", "--version --help", "stray stray", "--check x", "--schema x",
                          "--resume --result=-", "--replay", "--replay x --resume"):
            done = self.run_sba("--result", str(self.result_path), *arguments.split())
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertRegex(done.stderr, rb"\Acynode-sba: .*\n\Z")
            self.assertFalse(self.result_path.exists())

    def test_a_workspace_that_is_not_there(self):
        outcome = self.run_job(self.job(self.sh("true")), "--workspace", str(self.root / "none"))
        self.assert_end(outcome, 2, "environment_invalid", "name a job that has a directory `workspace` beside it")

    def test_a_typing_error_costs_no_result(self):
        # Where the command line names a job that cannot be opened, what stands at the result's path stays.
        self.assert_end(self.run_steps(self.sh("true")), 0)
        good = self.result_path.read_bytes()
        for arguments, meant in (("version", "did you mean --version?"), ("help", "did you mean --help?"),
                                 ("jbo.json", "job.json?"), ("--job jbo.json", "did you mean job.json?"),
                                 ("--job .", "Is a directory"), ("--job jbo.json --resume", "job.json?")):
            done = sba.run(*arguments.split(), cwd=self.job_directory)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assert_says(done.stderr.decode(), meant, "The result that stands is left as it is")
            self.assertEqual(self.result_path.read_bytes(), good, arguments)
        self.assertIn(b"did you mean --job?", self.run_sba("--jbo", "x").stderr)
        # A node that names its job by the environment would deliver the last job's.
        done = sba.run("--result", str(self.result_path), env={"SBA_JOB_PATH": str(self.root / "none")})
        code = json.loads(self.result_path.read_bytes())["failure_code"]
        self.assertEqual((done.returncode, code), (2, "environment_invalid"))

    def test_a_name_is_not_its_own_correction(self):
        # What cannot be opened for another cause than its name is not misspelt.
        job = self.put(self.job_directory / "job.json", "{}", mode=0)
        for path, why in ((job, "Permission denied"), (self.job_directory, "Is a directory")):
            done = sba.run("--job", str(path), "--result", str(self.result_path))
            self.assertEqual(done.returncode, 2)
            self.assert_says(done.stderr.decode(), why)
            self.assert_lacks(done.stderr.decode(), "did you mean")

    def test_a_result_takes_the_place_of_no_job(self):
        job = self.put(self.job_directory / "job.json", json.dumps(self.job(self.sh("touch ran"))))
        written = job.read_bytes()
        for arguments, variables in (
                (["--job", job, "--result", job], {}),
                ([], {"SBA_JOB_PATH": str(job), "SBA_RESULT_PATH": str(job)}),
                (["--job", job], {"SBA_TERMINATION_LOG": str(job)}),
                (["--job", job, "--result", self.result_path], {"SBA_TERMINATION_LOG": str(self.result_path)})):
            done = sba.run(*map(str, arguments), "--workspace", str(self.workspace), env=variables)
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            self.assertRegex(done.stderr, rb"\Acynode-sba: (the result would replace the job|SBA_TERMINATION_LOG name)")
            self.assertEqual(job.read_bytes(), written)
            self.assertFalse((self.workspace / "ran").exists())

    def test_a_result_is_named_only_where_it_is(self):
        for directory, status, named in ((self.root / "none", 3, False), (self.job_directory, 2, True)):
            done = sba.run("--log-format", "text", "--job", str(directory / "none.json"))
            self.assertEqual((done.returncode, b"\nresult: " in b"\n" + done.stderr), (status, named))

    def test_stdout_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["--help"], ["--version"], ["--schema"], ["--lua", "-e", "print(1)"]):
                done = sba.run(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
                said = b"cynode-sba: cannot write to stdout\n"
                self.assertEqual((done.returncode, done.stderr), (3, said), arguments)
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "wb") as closed:
            done = sba.run("--help", capture_output=False, stdout=closed, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, b""))  # as head does: it has enough

    @unittest.skipIf(sba.IS_DEV, "AddressSanitizer wants its memory")
    @sba.wants("strace")
    def test_no_memory_to_start_with(self):
        done = subprocess.run([*sba.injecting("mmap", "error=ENOMEM"), sba.BINARY, "--version"],
                              capture_output=True, timeout=60)
        said = b"cynode-sba: cannot start: out of memory\n"
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, b"", said))

    def test_schemas_are_valid_and_hold_what_they_describe(self):
        validate = {}
        for what in ("job", "result", "steps"):
            schema = json.loads(self.run_sba("--schema", what).stdout)
            self.assertEqual(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
            jsonschema.Draft202012Validator.check_schema(schema)
            validate[what] = jsonschema.Draft202012Validator(schema).validate
        job = self.job(self.write_file("a", "x"), self.read_file("none"), self.step("list_tree", path="."))
        validate["job"](job)
        validate["job"]({**job, "context": None, "inference": None, "steps": [
            {"id": None, "type": "read_file", "args": None, "arguments": {"path": "x", "max_bytes": None}}]})
        for given in (job, b"{"):
            validate["result"](self.run_job(given).result)
        with self.assertRaises(jsonschema.ValidationError):
            validate["job"]({**job, "surprise": True})
        self.assertEqual(self.run_sba("--schema").stdout, self.run_sba("--schema", "job").stdout)

    def complete(self, *words):
        script = ('source /dev/stdin; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_cynode_sba "$1" "${*: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"')
        functions = self.run_sba("--completion", "bash").stdout
        done = subprocess.run(["bash", "-c", script, "bash", "cynode-sba", *words], input=functions,
                              capture_output=True, cwd=self.workspace, timeout=60, check=True)
        return done.stdout.decode().split()

    def test_completions(self):
        self.put("a job.json"), self.put("b")
        for words, completed in (("--re", "--resume --replay --report --result"), ("--log-format j", "json"),
                                 ("--schema ", "job result steps report"), ("--validate b", "b")):
            self.assertEqual(self.complete(*words.split(" ")), completed.split())
        for shell in ("bash", "fish", "zsh"):
            script = self.run_sba("--completion", shell).stdout
            self.assertIn(b"log-format", script)
            if shutil.which(shell):
                subprocess.run([shell, "-n", "/dev/stdin"], input=script, check=True, timeout=60)

    def test_validate_tells_every_error(self):
        job = self.job(self.step("none"), surprise=1)
        del job["job_id"]
        done = self.run_sba("--validate", "-", stdin=json.dumps(job).encode())
        self.assertEqual(done.returncode, 2)
        lines = done.stdout.decode().splitlines()
        for pointer in ("/steps/0/type: ", "/surprise: ", "/job_id: "):
            self.assertEqual(sum(": " + pointer in line for line in lines), 1, lines)
        path = self.put("job.json", json.dumps(self.job()))
        for arguments, env in (([str(path)], {}), (["--job", str(path)], {}), ([], {"SBA_JOB_PATH": str(path)})):
            self.assertEqual(self.run_sba("--validate", *arguments, env=env).returncode, 0)
        self.assertEqual(self.run_sba("--validate", "none.json").returncode, 2)
        os.truncate(path, (64 << 20) + 1)
        done = self.run_sba("--validate", str(path))
        self.assertEqual((done.returncode, done.stdout), (2, b""), "it was read whole")
        self.assertIn(b"is larger than 67108864 bytes", done.stderr)

    def test_job_on_stdin_result_on_stdout(self):
        job = json.dumps(self.job(self.write_file("a", "x"))).encode()
        for arguments, env in ((["--stdin"], {}), ([], {"SBA_STDIN_STDOUT": "true", "SBA_RESULT_PATH": "/none/x"}),
                               (["--job", "-", "--result=-"], {})):
            done = self.run_sba(*arguments, "--workspace", str(self.workspace), stdin=job, env=env)
            self.assertEqual((done.returncode, json.loads(done.stdout)["status"]), (0, "success"))
            self.assertEqual([json.loads(line)["event"] for line in done.stderr.splitlines()][-1], "job.finished")
        self.assertEqual(os.listdir(self.job_directory), [])

    def test_mode_from_the_environment(self):
        outcome = self.assert_end(self.run_steps(env={"SBA_EXECUTION_MODE": "sideways"}), 2, "schema_validation",
                                  "SBA_EXECUTION_MODE")


class LuaTest(SandboxCase):
    def lua(self, *arguments, **options):
        return sba.run("--lua", *arguments, cwd=self.workspace, **options)

    def script(self, text):
        return str(self.put("script.lua", text))

    def test_scripts_get_their_arguments(self):
        path = self.script("print(arg[0], arg[1], #arg, ...) io.stdout:write(require 'native.bundle'.version)")
        done = self.lua(path, "one", "--two")
        self.assertEqual((done.returncode, done.stdout.split(b"\n")[0].decode()), (0, f"{path}\tone\t2\tone\t--two"))
        self.assertEqual(self.lua("-e", "print(..., arg[1])", "x").stdout, b"x\tx\n")

    def test_exit_statuses(self):
        for code, status in (("return 7", 0), ("os.exit(7)", 7), ("os.exit(true, true)", 0), ("error('oh no')", 1),
                             ("syntax error", 1)):
            self.assertEqual(self.lua("-e", code).returncode, status, code)
        done = self.lua(self.script("local function f() error('oh no') end\nf()"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rb"script\.lua:1: oh no(.|\n)*stack traceback")

    def test_a_signal_ends_a_script(self):
        process = subprocess.Popen([sba.BINARY, "--lua", "-e", "print('on') io.stdout:flush() while true do end"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 143)

    def test_a_script_on_stdin(self):
        lines = b"local function twice(x)\n  return 2 * x\nend\nprint(twice(21), arg[0], ...)\n"
        for arguments, more in (((), b"-"), (("-", "one"), b"-\tone")):
            done = self.lua(*arguments, stdin=lines)
            self.assertEqual((done.returncode, done.stdout), (0, b"42\t" + more + b"\n"))
        for code, printed, words in ((b"print 'begun'\nerror 'oh no'", b"begun\n", b"stdin:2: oh no\nstack traceback:"),
                                     (b"x +", b"", b"stdin:1: syntax error")):
            self.assert_fails(self.lua(stdin=code), words, printed)

    def assert_fails(self, done, words, printed=b""):
        self.assertEqual((done.returncode, done.stdout), (1, printed))
        self.assertIn(words, done.stderr)

    def test_what_is_no_script_is_said(self):
        for arguments, words in ((["-e"], b"-e requires code"), (["-x", "1"], b"does not know -x"),
                                 (["none.lua"], b"none.lua"),
                                 ([self.script(b"\x1bLua")], b"attempt to load a binary chunk")):
            self.assert_fails(self.lua(*arguments), words)

    def test_modules_are_the_programs_own_alone(self):
        self.put("mine.lua", "print 'from the directory'")
        self.put("cjson.lua", "print 'not from the program'")
        for module in ("job/init", "job/context"):
            self.put(f"sba/{module}.lua", "print 'not from the program'")
        variables = {name: "./?.lua;./?/init.lua" for name in ("LUA_PATH", "LUA_PATH_5_4", "LUA_CPATH")}
        code = """
          require 'cjson' require 'sba.job' print(pcall(require, 'mine'))
          package.path = './?.lua;./?/init.lua'
          -- A script may name a directory; what is bundled still comes first.
          require 'sba.job.context' require 'mine'"""
        done = self.lua("-e", code, env={**variables, "LUA_INIT": "print 'from the environment'"})
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"no bundled module 'mine'", done.stdout)
        self.assertNotIn(b"no file './", done.stdout, "a directory was looked into that nobody had named")
        self.assertTrue(done.stdout.endswith(b"\nfrom the directory\n"), done.stdout)
        self.assertNotRegex(done.stdout, b"not from the program|from the environment")

    def test_everything_is_at_hand(self):
        self.put("a.txt", "alpha")
        code = """
          local read = step('read_file', { path = 'a.txt' })
          print(read.content, native.text.sha256 '', sba.util.json.encode(sba.util.json.array {}))
          print(pcall(step, 'read_file', {}))
          io.stdout:write(help and '' or 'no help')"""
        done = self.lua("-e", code)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith(b"alpha\te3b0c442"), done.stdout)
        self.assertIn(b"\t[]\nfalse\ttable", done.stdout)

    def test_what_a_step_left_running_ends_with_the_script(self):
        code = "local s = step('run_command', { shell = 'sleep 3600 >/dev/null & echo $!' }) print(s.stdout)"
        self.assertRaises(ProcessLookupError, os.kill, int(self.lua("-e", code).stdout), 0)


sba.main(__name__)
