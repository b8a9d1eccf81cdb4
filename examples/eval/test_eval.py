# SPDX-License-Identifier: Apache-2.0
"""examples/eval/eval.py: the reference solutions solve everything, and what is not solved is not called so. SBA_BINARY names the binary."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from servers import model  # noqa: E402
from servers.model import call  # noqa: E402


class Run(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sba-eval-test-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.root.chmod(0o755)

    def run_eval(self, *arguments, status=0, env=None):
        """What it prints."""
        done = subprocess.run([sys.executable, "-B", HERE / "eval.py", "--binary", os.environ["SBA_BINARY"], "--directory", self.root, *arguments],
                              capture_output=True, check=False, text=True, env=env)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def run_replies(self, task, *replies):
        """The row of a task, as a model that gives these replies leaves it."""
        with model.Server({"models": {"m": {}}, "replies": list(replies)}) as server:
            self.run_eval("--endpoint", server.url, "--model", "m", "--json", self.root / "rows.json", task)
        return json.loads((self.root / "rows.json").read_text())["rows"][0]

    def test_reference(self):
        """Every check fails for the untouched workspace and passes with the reference."""
        count, kinds = (48, []) if os.environ.get("SBA_LONG") else (44, ["c-", "js-", "py-", "sh-", "tally-", "toy-"])  # Go builds its library each time
        printed = self.run_eval("--reference", "--jobs", "2", *kinds)
        print(printed)
        skipped = printed.count("skipped: there is no")
        self.assertIn(f"solved {count - skipped} of {count - skipped}, said done of 0 that were not, skipped {skipped};", printed)

    def test_claim(self):
        """A model that looks and then only claims."""
        row = self.run_replies("c-trim", call("list_tree"), call("finish", answer="I have mended trim."))
        self.assertEqual((row["solved"], row["claimed"], row["turns"]), (False, True, 2))
        self.assertIn("says done, but", row["wrong"])

    def test_wrong_answer(self):
        """A question whose answer names all users."""
        row = self.run_replies("py-log", call("list_tree"), call("finish", answer="root 9? No:\n**ANSWER: root 9**"))
        self.assertFalse(row["solved"])
        self.assertIn("the answer is 'root 9'", row["wrong"])

    def test_an_early_end_of_the_process_is_no_solution(self):
        for task, path, line in (("c-trim", "trim.c", "static char *trim(char *text) { exit(0); return text; }"),
                                 ("py-merge", "intervals.py", "import sys; sys.exit(0)"), ("js-lru", "cache.js", "process.exit(0);")):
            row = self.run_replies(task, call("write_file", path=path, content=f"#include <stdlib.h>\n#include <string.h>\n{line}\n" if path[-1] == "c"
                                              else line + "\n"), call("finish", answer="Done."))
            self.assertFalse(row["solved"], row)

    def test_other_agents_are_counted_and_never_see_the_key(self):
        agent = ('curl -s -d \'{"model": "m", "messages": []}\' "$OPENAI_BASE_URL"/chat/completions; echo; env | grep -c s3cret; echo ANSWER: mallory 7')
        with model.Server({"models": {"m": {}}, "replies": [{"content": "hi", "prompt_tokens": 11, "completion_tokens": 5}]}) as server:
            self.run_eval("--agent", agent, "--endpoint", server.url + "/v1", "--api-key-env", "KEY", "--json", self.root / "rows.json", "py-log",
                          env={**os.environ, "KEY": "s3cret"})
            (chat,) = [request for request in server.requests if "/chat" in request["path"]]
        self.assertEqual(chat["headers"]["authorization"], "Bearer s3cret")
        (row,) = json.loads((self.root / "rows.json").read_text())["rows"]
        self.assertEqual((row["solved"], row["turns"], row["prompt_tokens"], row["completion_tokens"]), (True, 1, 11, 5), row)

    def test_a_server_that_dies_within_a_reply_ends_that_reply_alone(self):
        with model.Server({"models": {"m": {}}, "replies": [{"content": "a b", "fault": "cut_midline"}]}) as server:
            with subprocess.Popen([sys.executable, "-B", HERE / "proxy.py", "--endpoint", server.url + "/v1", "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as proxy:
                chat = proxy.stdout.readline().strip() + "/chat/completions"
                said = subprocess.run(["curl", "-s", "-d", '{"model": "m", "messages": [], "stream": true}', chat], capture_output=True, check=False)
                self.assertIn(b"data: ", said.stdout)
                proxy.send_signal(signal.SIGINT)
                figures, errors = proxy.communicate()
        self.assertEqual((json.loads(figures)["turns"], errors), (0, ""))

    def test_hostile_workspace(self):
        """A FIFO cannot be copied, a link does not lead the check outside, and neither ends the run."""
        row = self.run_replies("c-trim", call("run_command", shell="rm trim.c; mkfifo trim.c"), call("finish", answer="Done."))
        self.assertIn("cannot be copied", row["wrong"])
        row = self.run_replies("c-trim", call("run_command", shell="ln -sf /etc/shadow trim.c"), call("finish", answer="Done."))
        self.assertFalse(row["solved"])

    def test_no_model(self):
        printed = self.run_eval("--endpoint", "http://127.0.0.1:1", "--model", "m", "--seconds", "20", "c-trim")
        self.assertIn("inference_unavailable", printed)
        self.assertIn("solved 0 of 1", printed)

    def test_missing_programs(self):
        """A task whose compiler or interpreter is missing is skipped, and that is said."""
        tools = self.root / "tools"
        tools.mkdir()
        for name in ("sh", "cat", "cp", "rm", "mkdir", "mv", "touch", "ls", "env", "printf", "python3"):
            (tools / name).symlink_to(shutil.which(name))
        printed = self.run_eval("--reference", "go-alias", "js-", "sh-blanks", env={"PATH": str(tools)})
        self.assertEqual(printed.count("skipped: there is no node here"), 5)
        self.assertIn("skipped: there is no go here", printed)
        self.assertIn("solved 1 of 1, said done of 0 that were not, skipped 6;", printed)

    def test_other_agent_and_compare(self):
        """An agent that knows one of two tasks; both runs side by side."""
        agent = 'grep -q mallory * && echo "ANSWER: mallory 7"; true'
        self.run_eval("--agent", agent, "--repeat", "2", "--json", self.root / "a.json", "py-log", "c-trim")
        self.run_eval("--agent", "false", "--json", self.root / "b.json", "py-log")
        printed = self.run_eval("--compare", self.root / "a.json", self.root / "b.json")
        self.assertEqual([line.split() for line in printed.splitlines()[2:]], [["c-trim", "0/2", "-"], ["py-log-question", "2/2", "0/1"]])

    def test_wrong_calls(self):
        for arguments in [(), ("--endpoint", "http://127.0.0.1:1"), ("--reference", "no-such-task")]:
            self.run_eval(*arguments, status=2)


unittest.main(verbosity=2)
