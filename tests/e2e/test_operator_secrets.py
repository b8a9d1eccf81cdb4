# SPDX-License-Identifier: Apache-2.0
"""The secrets of the operator (SBA_SECRETS, SBA_SECRETS_DIR): who gets them and who does not, that no sink of the
runner holds one whatever a worker does with it, and what is wrong with those that cannot be kept so.
"""
import json
import os
import pathlib
import signal
import unittest

import sba
from agent_case import finish, runs
from confined_case import ABI, PLACE
from secret_case import PYTHON, TOKEN, WAYS, SecretCase, leaks

OTHER = "other/Secret+5678="
NAMES = ("WORKER_KEY", "OTHER_KEY")


class OperatorCase(SecretCase):
    """WORKER_KEY is a variable, OTHER_KEY a file."""

    place = PLACE  # in /tmp no directory can be hidden

    def setUp(self):
        super().setUp()
        self.directory = self.root / "secrets"
        self.directory.mkdir()
        self.secret("OTHER_KEY", OTHER + "\n")
        self.environment = {"SBA_SECRETS": "WORKER_KEY", "WORKER_KEY": TOKEN, "SBA_SECRETS_DIR": str(self.directory)}
        (self.workspace / "loot").unlink()

    def secret(self, name, value):
        path = self.directory / name
        path.write_bytes(value if isinstance(value, bytes) else value.encode())
        self.give(path)
        return path

    def with_key(self, script, *names, **more):
        return self.sh(script, secrets=list(names or ["WORKER_KEY"]), **more)

    def assert_kept(self, outcome, servers=()):
        for secret in (TOKEN, OTHER):
            self.assert_clean(outcome, secret, servers)

    def refused(self, env, job=None):
        outcome = self.run_job(job or self.job(self.sh("touch ran")), env=env)
        self.assert_end(outcome, 2, "environment_invalid")
        self.assertEqual(outcome.result["job_id"], "job-1")
        self.assertFalse((self.workspace / "ran").exists())
        self.assert_kept(outcome)
        return outcome.message


class WhoGetsThem(OperatorCase):
    # A file of the workspace is no sink: it shows what a command really had.
    SEES = ('env | grep -E "^(WORKER|OTHER|SBA_SECRETS)" | cut -d= -f1 | sort | tr "\\n" " " > %s; '
            'printf "%%s|%%s" "$WORKER_KEY" "$OTHER_KEY" >> %s')

    def sees(self, name, *names, **more):
        script = self.SEES % (name, name)
        return self.sh(script, secrets=list(names), **more) if names else self.sh(script, **more)

    def test_the_steps_and_checks_that_list_them_and_no_others(self):
        check = {"criterion": "the worker can sign", "check": self.sees("check", "OTHER_KEY")["arguments"]}
        other = {"criterion": "another", "check": self.sees("other")["arguments"]}
        steps = self.sees("both", *NAMES), self.sees("none"), self.sees("one", "WORKER_KEY", env={"A": "b"})
        outcome = self.assert_end(self.run_steps(*steps, context={"acceptance_criteria": [check, other]}), 0)
        self.assertEqual({name: self.text(name) for name in ("both", "none", "one", "check", "other")}, {
            "both": f"OTHER_KEY WORKER_KEY {TOKEN}|{OTHER}", "none": "|", "one": f"WORKER_KEY {TOKEN}|",
            "check": f"OTHER_KEY |{OTHER}", "other": "|"})
        self.assert_kept(outcome)

    def test_no_command_of_a_model(self):
        # But a check of its job.
        criterion = {"criterion": "signed", "check": self.sees("check", "WORKER_KEY")["arguments"]}
        server = self.server(runs(self.SEES % ("first", "first")), runs("touch asked", secrets=["WORKER_KEY"]),
                             runs("touch asked", secrets="WORKER_KEY"), finish())
        outcome = self.run_agent(server, job=self.agent_job(context={"acceptance_criteria": [criterion]}))
        self.assert_end(outcome, 0)
        self.assertEqual((self.text("first"), self.text("check")), ("|", f"WORKER_KEY {TOKEN}|"))
        self.assertFalse((self.workspace / "asked").exists())
        self.assertEqual(len([answer for answer in self.tool_answers(server, 3) if "gets no secrets" in answer]), 2)
        requests = json.dumps(server.requests)
        self.assertNotIn("secrets", json.dumps(server.chats()[0]["tools"]))
        self.assert_kept(outcome, servers=[requests.encode()])

    def test_a_step_of_an_agents_job_that_lists_them_is_refused(self):
        job = self.agent_job()
        job["steps"] = [self.sh("true"), self.with_key("true")]
        outcome = self.assert_end(self.run_job(job), 2, "schema_validation",
                                  "/steps/1/arguments/secrets/0: a model's commands get no secrets")

    def test_neither_the_runners_environment_nor_its_command_line_has_them(self):
        script = 'cat /proc/$PPID/environ /proc/$PPID/cmdline > environment; true'
        outcome = self.run_steps(self.sh(script), self.with_key(script + "; echo on > turn; cat turn > end"))
        self.assert_end(outcome, 0)
        turn = self.fifo("held")
        process = self.start(self.job(self.with_key("cat held")))
        try:
            with turn.open("w"):
                if os.geteuid() == 0:
                    runner = pathlib.Path(f"/proc/{process.pid}")
                    seen = (runner / "environ").read_bytes() + (runner / "cmdline").read_bytes()
                    self.assertIn(b"HOME=", seen)
                    self.assertFalse(leaks(seen) + leaks(seen, OTHER))
                    self.assertNotIn(str(self.directory).encode(), seen)
        finally:
            outcome = self.outcome_of(process)
        self.assert_end(outcome, 0)

    @unittest.skipUnless(ABI, "this kernel has no Landlock")
    def test_what_an_earlier_step_left_cannot_read_a_later_steps_environment(self):
        spy = ("(until test -e done; do cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' "
               "| grep -a ^WORKER_KEY= >> seen && touch caught; touch ready; sleep 0.02; done) >/dev/null 2>&1 &")
        wait = "until test -e ready; do sleep 0.02; done; rm ready; until test -e ready; do sleep 0.02; done"
        self.assert_end(self.run_steps(self.sh(spy), self.with_key(wait), self.sh("touch done; test ! -e caught")), 0)


class Sinks(OperatorCase):
    def test_no_way_to_print_one_gets_through(self):
        # In each encoding in which tools print it, to either stream, torn over two writes, in a check's output.
        script = f'printf %s "$WORKER_KEY" > loot; {PYTHON} leak.py '
        steps = [self.with_key(script + way) for way in (*WAYS, "environment")]
        check = self.with_key('echo "$WORKER_KEY"; echo "$OTHER_KEY" | base64; exit 1', *NAMES)["arguments"]
        outcome = self.run_steps(*steps, context={"acceptance_criteria": [{"criterion": "c", "check": check}]})
        self.assertEqual((outcome.code, len(outcome.steps)), ("acceptance_unmet", len(steps) + 1), outcome.message)
        for way, step in zip((*WAYS, "environment", "check"), outcome.steps):
            self.assertIn("[redacted]", step["output"], way)
        self.assert_kept(outcome)

    def test_in_the_workspace_and_the_artifacts(self):
        # Files and the diff that makes them keep what was written; results, pages and names of artifacts do not.
        secret = "sk-Zq83.Lm-0pWx_7rTgB"  # may be the name of a file
        script = ('echo "key=$WORKER_KEY" > config; echo "$WORKER_KEY" > "$CYNODE_ARTIFACTS_DIR/$WORKER_KEY.txt"; '
                  'mkdir "$WORKER_KEY"; touch "$WORKER_KEY/a"; cat "$WORKER_KEY" "no/$WORKER_KEY"; true')
        diff = f"--- a/config\n+++ b/config\n@@ -1 +1 @@\n-key={secret} other={secret}\n+key=x{secret}\n"

        def replace(old, new):
            return self.step("replace_in_file", path="config", old_text=old, new_text=new)

        steps = [self.with_key(script), self.read_file("config"), self.step("search_files", pattern="key"),
                 self.step("list_tree"), replace("key=", f"key={secret} other="), self.apply_diff(diff),
                 self.sh(f"echo {secret}; echo wrong: {secret} >&2"), replace(secret + "no", "")]
        job = self.job(*steps, report_changes=True, context={"requirements": [f"sign with {secret}"]})
        outcome = self.run_job(job, env={"WORKER_KEY": secret})
        self.assertEqual((outcome.code, len(outcome.steps)), ("step_failed", len(steps)), outcome.message)
        self.assert_clean(outcome, secret)
        self.assertIn(secret, self.text("config"))
        artifacts = self.job_directory / "artifacts"
        self.assertEqual((artifacts / f"{secret}.txt").read_text(), secret + "\n")
        self.assertIn(f"+key=x{secret}".encode(), (artifacts / "changes.patch").read_bytes())
        paths = sorted(artifact["path"] for artifact in outcome.result["artifacts"])
        self.assertEqual(paths, ["[redacted].txt", "changes.patch"])
        for form in ("html", "markdown", "junit"):
            env = {**self.environment, "WORKER_KEY": secret}
            page = sba.run("--report", str(self.result_path), "--format", form, env=env).stdout
            self.assertIn(b"redacted", page)
            self.assertFalse(leaks(page, secret), form)

    def test_in_reports_and_traces(self):
        reports = self.status_server()
        job = self.job(self.with_key('echo "$WORKER_KEY"'), self.with_key('echo "$WORKER_KEY"; exit 1', *NAMES))
        env = {"SBA_JOB_STATUS_URL": reports.url, "OTEL_EXPORTER_OTLP_ENDPOINT": reports.url,
               "SBA_TERMINATION_LOG": str(self.job_directory / "end")}
        outcome = self.run_job(job, "--follow", "--log-format", "text", env=env)
        self.assertEqual(outcome.code, "step_failed")
        self.assertGreater(len(reports.received), 2)
        self.assert_kept(outcome, servers=reports.received)

    def test_an_end_by_exec(self):
        # The runner crashes: the new image is given none, and what a command printed until then is in the result.
        script = 'echo "$WORKER_KEY" | tee -a seen; echo "$WORKER_KEY" | base64; touch printed; cat turn'
        self.fifo()
        job = self.job(self.with_key('echo "$WORKER_KEY"'), self.with_key(script))
        outcome = self.run_and_signal(job, signal.SIGSEGV, (self.workspace / "printed").exists, "the file `printed`")
        self.assertEqual(outcome.code, "internal_error")
        self.assertEqual(outcome.steps[0]["output"], "[redacted]\n")
        self.assert_kept(outcome)

    def test_a_job_that_is_killed_and_resumed(self):
        once = 'test -e killed && test -n "$WORKER_KEY" || { touch killed; sleep 60; }'
        job = self.job(self.with_key('echo "$WORKER_KEY"'), self.with_key(once),
                       self.with_key('echo "$OTHER_KEY" | base64', "OTHER_KEY"))
        outcome = self.run_and_kill(job)
        self.assertEqual(outcome.code, "interrupted")
        self.assert_kept(outcome)
        refused = self.run_job(job, "--resume", env={"SBA_SECRETS": "", "WORKER_KEY": ""})
        self.assertEqual(refused.exit, 2, refused.result)
        outcome = self.run_job(job, "--resume")
        self.assertEqual((outcome.exit, len(outcome.steps)), (0, 3), outcome.result)
        self.assert_kept(outcome)

    def test_several_lines(self):
        # Each line is one: searches and diffs show single lines.
        lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB",
                 "-----END PRIVATE KEY-----"]
        self.secret("PRIVATE_KEY", "\n".join(lines) + "\n")
        script = ('printf "%s\\n" "$PRIVATE_KEY" > key.pem; sed "s/^/  /" key.pem; grep -n MII key.pem; '
                  'printf %s "$PRIVATE_KEY" | wc -l; base64 key.pem; tr "\\n" "\\r" < key.pem')
        search = self.step("search_files", pattern="AQEF", path="key.pem")
        one_line = self.read_file("key.pem", start_line=2, end_line=2)
        outcome = self.assert_end(self.run_steps(self.with_key(script, "PRIVATE_KEY"), search, one_line), 0)
        self.assertIn("\n3\n", outcome.steps[0]["output"])
        for line in lines[1:3]:
            self.assert_clean(outcome, line)


class Mistakes(OperatorCase):
    def test_unknown_names_refuse_the_job_before_anything_runs(self):
        check = {"criterion": "c", "check": {"command": "true", "secrets": ["OTHER_KEY", "NOT_SET"]}}
        job = self.job(self.sh("touch ran"), self.with_key("true", "WORKER_KEY", "WORKER_KEYS"),
                       context={"acceptance_criteria": [check]})
        outcome = self.run_job(job, env={"SBA_SECRETS": "WORKER_KEY , NOT_SET,"})
        self.assert_end(outcome, 2, "schema_validation")
        unknown = 'no secret has the name "WORKER_KEYS" (did you mean WORKER_KEY?)'
        self.assertIn("/steps/1/arguments/secrets/1: " + unknown, outcome.message)
        self.assertIn("/context/acceptance_criteria/0/check/secrets/1: the secret NOT_SET is not set", outcome.message)
        self.assertFalse((self.workspace / "ran").exists())
        (warning,) = outcome.events("secret.warning")
        self.assertIn("SBA_SECRETS names NOT_SET, which is not set", warning["error"])
        path = str(self.job_directory / "job.json")
        done = sba.run("--validate", path, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        notes = done.stdout.decode().splitlines()
        self.assertEqual(len(notes), 3)
        self.assertRegex(notes[0], r":1:\d+: note: /steps/1/arguments/secrets/1: no secret has the name")
        self.assertTrue(notes[2].endswith(": valid"))

    def test_what_a_job_says_of_them_is_checked(self):
        for arguments, pointer in (
                ({"secrets": "WORKER_KEY"}, "secrets"), ({"secrets": [1]}, "secrets/0"),
                ({"secrets": ["A B"]}, "secrets/0"), ({"secret": []}, "secret"),
                ({"secrets": ["WORKER_KEY"], "env": {"WORKER_KEY": "x"}}, "secrets")):
            outcome = self.assert_end(self.run_steps(self.run_command("true", **arguments)), 2, "schema_validation",
                                      f"/steps/0/arguments/{pointer}: ")

    def test_values_that_cannot_be_kept(self):
        for value, why in (("1234567", "fewer than 8 bytes"), ("  1234567 \n", "fewer than 8 bytes"),
                           ("", "fewer than 8 bytes"), ("x" * 32769, "larger than 32768"),
                           (b"12345678\0", "UTF-8 text without NUL"), (b"12345678\xff", "UTF-8 text without NUL")):
            self.secret("OTHER_KEY", value)
            self.assertIn(why, self.refused({}), value)
        self.secret("OTHER_KEY", OTHER)
        self.assertIn("the variable WORKER_KEY (SBA_SECRETS) cannot be a secret", self.refused({"WORKER_KEY": "short"}))
        for value in ("12345678", "päss wörd " * 2600):  # the least, and nearly the most
            self.secret("OTHER_KEY", value)
            self.assert_end(self.run_steps(self.with_key('printf %s "$OTHER_KEY" > value', "OTHER_KEY")), 0)
            self.assertEqual(self.text("value"), value)

    def test_one_newline_at_the_end_of_a_file_is_not_of_the_value(self):
        script = 'printf %s. "$OTHER_KEY" > value; echo "$OTHER_KEY"'
        for content, value in ((OTHER, OTHER), (OTHER + "\n", OTHER), (OTHER + "\r\n", OTHER),
                               (OTHER + "\n\n", OTHER + "\n"), (f" {OTHER}\n", " " + OTHER)):
            self.secret("OTHER_KEY", content)
            outcome = self.assert_end(self.run_steps(self.with_key(script, "OTHER_KEY")), 0)
            self.assertEqual((self.workspace / "value").read_bytes().decode(), value + ".")
            self.assert_kept(outcome)

    def test_files_that_cannot_be_secrets(self):
        # None of them makes the runner wait.
        def write(path):
            path.write_text(OTHER)

        made = {
            "fifo": os.mkfifo, "directory": os.mkdir, "loop": lambda path: path.symlink_to(path.name),
            "dangling": lambda path: path.symlink_to("nowhere"), "device": lambda path: path.symlink_to("/dev/zero"),
            "closed": lambda path: (path.write_text(OTHER), path.chmod(0)), "not-a-name": write, "1ST": write,
            "SBA_MCP_TOKEN": write, "HTTP_PROXY": write,
        }
        for name, make in made.items():
            path = self.directory / name
            make(path)
            self.assertIn(name, self.refused({}), name)
            path.rmdir() if name == "directory" else path.unlink()
        for number in range(100):
            self.secret(f"KEY_{number}", f"secret-number-{number}")
        self.assertIn("more than 100 entries", self.refused({}))
        for number in range(100):
            (self.directory / f"KEY_{number}").unlink()
        for number in range(5):
            self.secret(f"KEY_{number}", f"{number} is a secret\n" * 2000)
        self.assertIn("there may be 100 of 131072", self.refused({}))

    def test_settings_that_make_no_sense(self):
        file = self.secret("FILE", OTHER)
        for path in (self.root / "none", file, "", "relative", "/"):
            if path:
                self.assertIn("SBA_SECRETS_DIR", self.refused({"SBA_SECRETS_DIR": str(path)}), path)
        for names, named in (("A B", '"A B"'), ("WORKER_KEY;OTHER", "is none"),
                             ("SBA_JOB_PATH", "SBA_JOB_PATH, which the runner itself reads"),
                             ("https_proxy", "https_proxy"), ("OLLAMA_BASE_URL", "OLLAMA_BASE_URL"),
                             (f"{TOKEN},WORKER_KEY", "[redacted]")):
            self.assertIn(named, self.refused({"SBA_SECRETS": names}))

    def test_as_kubernetes_mounts_them(self):
        # Links to links into a directory whose name begins with a dot.
        hidden = self.directory / "..2026_11_28"
        hidden.mkdir()
        (hidden / "TOKEN_OF_POD").write_text("pod-token-1234")
        (self.directory / "..data").symlink_to(hidden.name)
        (self.directory / "TOKEN_OF_POD").symlink_to("..data/TOKEN_OF_POD")
        script = f'printf %s "$TOKEN_OF_POD" > value; cat {self.directory}/..data/*'
        outcome = self.run_steps(self.with_key(script, "TOKEN_OF_POD"))
        self.assertEqual(self.text("value"), "pod-token-1234")
        if ABI:
            self.assertIn("Permission denied", outcome.steps[0]["output"])
        self.assert_clean(outcome, "pod-token-1234")

    def test_a_file_comes_before_a_variable(self):
        self.secret("WORKER_KEY", "from-a-file-1234")
        outcome = self.run_steps(self.with_key('printf %s "$WORKER_KEY" > value'))
        self.assertEqual((outcome.exit, self.text("value")), (0, "from-a-file-1234"))

    def test_what_shows_texts_says_that_it_knows_too_little(self):
        self.secret("OTHER_KEY", "short")
        job = self.job_directory / "job.json"
        job.write_text(json.dumps(self.job()))
        done = sba.run("--validate", str(job), env=self.environment)
        self.assertEqual((done.returncode, b"fewer than 8 bytes" in done.stderr), (0, True), done)
        done = sba.run("--help", env=self.environment)
        self.assertEqual((done.returncode, done.stderr), (0, b""))


class TheKeyOfTheRunner(OperatorCase):
    def test_is_passed_on_only_where_the_operator_names_it(self):
        script = 'printf %s "$OPENAI_API_KEY" > key'
        server = self.server(runs(script), finish())
        for names, value in (("", ""), ("OPENAI_API_KEY", TOKEN)):
            env = {"OPENAI_API_KEY": TOKEN, "SBA_SECRETS": names, "OPENAI_BASE_URL": server.url + "/v1"}
            step = self.with_key(script, names) if names else self.sh(script)
            outcome = self.assert_end(self.run_steps(step, env=env), 0)
            self.assertEqual(self.text("key"), value)
            self.assert_kept(outcome)
        outcome = self.run_agent(server, form="openai", env={"OPENAI_API_KEY": TOKEN, "SBA_SECRETS": "OPENAI_API_KEY"})
        self.assert_end(outcome, 0)
        sent = {request["headers"].get("authorization") for request in server.requests}
        self.assertEqual(sent, {"Bearer " + TOKEN})

    def test_one_that_looks_like_a_key_and_is_not_named_is_said(self):
        env = {"ANTHROPIC_API_KEY": "sk-ant-12345678", "GH_TOKEN": "ghp_12345678", "MY_PASSWORD": "12345678",
               "TOKENIZERS_PARALLELISM": "false", "A_TOKEN": ""}
        outcome = self.run_steps(self.sh("true"), env=env)
        (warning,) = outcome.events("secret.warning")
        self.assertIn("ANTHROPIC_API_KEY, GH_TOKEN and MY_PASSWORD", warning["error"])
        env["SBA_SECRETS"] = "ANTHROPIC_API_KEY,GH_TOKEN,MY_PASSWORD"
        outcome = self.run_steps(self.sh("true"), env=env)
        self.assertEqual(outcome.events("secret.warning"), [])


@unittest.skipUnless(ABI, "this kernel has no Landlock")
class Hidden(OperatorCase):
    def test_no_command_opens_a_file_of_the_directory(self):
        target = self.root / "elsewhere"
        target.write_text("linked-secret-1")
        (self.directory / "LINKED").symlink_to(target)
        (self.workspace / "link").symlink_to(self.directory / "OTHER_KEY")
        script = (f"cat {self.directory}/* {target} link; cp {self.directory}/OTHER_KEY copy; "
                  f"ln {self.directory}/OTHER_KEY copy; mv {self.directory} moved; true")
        outcome = self.assert_end(self.run_steps(self.with_key(script)), 0)
        self.assertGreaterEqual(outcome.steps[0]["output"].count("Permission denied"), 4)
        self.assertNotIn("redacted", outcome.steps[0]["output"])
        self.assertFalse((self.workspace / "copy").is_file() and (self.workspace / "copy").stat().st_size)
        self.assertEqual(self.said_of(outcome), [])

    def said_of(self, outcome):
        return [one for one in outcome.confinement.get("partial", []) if str(self.directory) in one]

    def test_where_they_cannot_be_hidden_that_is_said_and_refused_if_confinement_is_required(self):
        env = {"SBA_WRITABLE": str(self.directory)}
        outcome = self.run_steps(self.sh("true"), env=env)
        (said,) = self.said_of(outcome)
        self.assertIn(f"the directory of secrets {self.directory} can be read by commands", said)
        self.assertIn(said, self.refused({**env, "SBA_CONFINE": "require"}))
        many = self.root / "many"
        many.mkdir()
        for number in range(4100):
            (many / f"entry-{number}").touch()
        self.directory = self.directory.rename(many / "secrets")
        outcome = self.run_steps(self.sh("true"), env={"SBA_SECRETS_DIR": str(self.directory)})
        why = f"{self.directory} can be read by commands: {many}/ has more than 4096 entries"
        self.assertEqual(self.said_of(outcome), [why])
        self.assertIn("entries", self.refused({"SBA_SECRETS_DIR": str(self.directory), "SBA_CONFINE": "require"}))
        self.directory = self.directory.rename(self.root / "secrets")
        outcome = self.run_steps(self.sh("true"), env={"SBA_CONFINE": "off"})
        self.assertEqual(outcome.confinement["writes"], "none")
        said = f"the directory of secrets {self.directory} can be read by commands: nothing confines them"
        self.assertEqual(self.said_of(outcome), [said])


sba.main(__name__)
