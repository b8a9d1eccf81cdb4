# SPDX-License-Identifier: Apache-2.0
"""The calls that models naturally write: other names, lists for lines, texts for numbers. One meaning is done."""
import itertools
import json

import sba
from agent_case import FORMATS, AgentCase, as_json, call, calls, finish, runs

TEXT = "".join(f"line {number}\n" for number in range(1, 6))


class NaturalCallsCase(AgentCase):
    def answers(self, *list_of_calls, form="ollama", code=None, replies=1):
        """Of these calls, all in one reply or in several; and the job's result."""
        list_of_calls = [call if isinstance(call, tuple) else ("run_command", call) for call in list_of_calls]
        size = -(-len(list_of_calls) // replies)
        parts = [list_of_calls[start:start + size] for start in range(0, len(list_of_calls), size)]
        outcome, server = self.run_replies(*[calls(*part) for part in parts], finish("done"), form=form)
        self.assertEqual(outcome.code, code, outcome.result)
        told = self.tool_answers(server, -1)
        told[-1] = told[-1].split("\n\nTime left:")[0]
        self.assertEqual(len(told), len(list_of_calls))
        return told, outcome

    def run_arguments(self):
        return [line["arguments"] for line in self.journal() if line["event"] == "step.started"]


class Commands(NaturalCallsCase):
    def setUp(self):
        super().setUp()
        self.put("x/a b.txt", "hello\n")

    LISTED = [{"command": "ls x"}, {"command": "cd x && ls | tail -1"}, {"cmd": "ls x"}, ("bash", {"command": "ls x"}),
              ("shell", {"command": "ls x"}), ("sh", {"cmd": "ls x"}), ("execute_command", {"command": "ls x"}),
              ("terminal", {"cmd": "ls x"}), ("Bash", {"command": "ls x"}),
              ("container.exec", {"cmd": ["bash", "-lc", "ls x"]}), {"command": ["ls", "x"]}, {"command": ["ls x"]},
              {"command": '["ls", "x"]'}, {"argv": ["ls", "x"]}, {"argv": "ls x"}, {"command": "ls", "args": ["x"]},
              {"command": "ls", "args": "x"}, {"command": "ls", "args": '["x"]'}, {"command": "ls -1", "args": ["x"]},
              {"command": "cat x/* | true; ls x", "args": []}, {"shell": "ls", "args": ["x"]},
              {"shell": "bash", "args": ["-c", "ls x"]}, {"shell": 'ls "$1"', "args": ["x"]},
              {"shell": "bash", "command": "ls x"}, {"shell": True, "command": "ls x"},
              {"command": "ls x", "shell": "ls x"}, {"command": "ls", "working_dir": "x"},
              {"command": "ls", "cwd": "x"}, {"command": "ls", "workdir": "x"}, {"command": "ls x", "timeout": 5},
              {"command": "ls x", "timeout_seconds": "5"}, {"command": "ls x", "timeout": "5.5"},
              {"command": "ls x", "timeout_ms": 5000}, {"command": "ls $WHERE", "env": {"WHERE": "x"}},
              {"command": "test $PORT = 80 && ls x", "env": {"PORT": 80}},
              {"command": "ls x", "working_dir": None, "stdin": None}, {"Command": "ls x", "workingDir": "."},
              {"command": "ls x; sleep", "args": 0}, {"command": "ls x", "argv": "None", "shell": None, "env": "null"}]

    def test_commands_with_one_meaning_run(self):
        for form in FORMATS:
            # With others between them, or it is the same call again and again.
            pairs = [(given, {"command": f"echo {number}"}) for number, given in enumerate(self.LISTED)]
            told, outcome = self.answers(*itertools.chain(*pairs), form=form, replies=2)
            for given, answer in zip(self.LISTED, told[::2]):
                with self.subTest(form, given=given):
                    self.assertRegex(answer, r"^\[step-\d+\]\na b\.txt\n$")
            self.assertEqual({step["type"] for step in outcome.steps}, {"run_command"})
        ran = self.run_arguments()[::2]
        self.assertEqual(ran[0], {"shell": "ls x", "working_dir": ".", "timeout_seconds": 120})
        self.assertEqual(ran[10], {"argv": ["ls", "x"], "working_dir": ".", "timeout_seconds": 120})
        self.assertEqual(ran[29], {"shell": "ls x", "working_dir": ".", "timeout_seconds": 5})
        self.assertEqual(ran[32]["timeout_seconds"], 5)

    def test_arguments_with_blanks_stay_whole(self):
        told, _ = self.answers({"command": "cat", "args": ["x/a b.txt"]}, {"command": "cat -u", "args": ["x/a b.txt"]},
                               {"command": ["cat", "x/a b.txt"]}, {"command": "cat 'x/a b.txt'"})
        for answer in told:
            self.assertTrue(answer.endswith("]\nhello\n"), answer)

    def test_two_meanings_are_answered_with_the_right_form(self):
        unclear = [{"command": ["ls", "x", "|", "wc"]}, {"command": "cd x && ls", "args": ["-l"]},
                   {"command": "ls", "shell": "rm -r x"}, {"command": "ls", "argv": ["pwd"]}, {}, {"command": ""},
                   {"command": []}, {"command": {"a": 1}}, {"command": 7.5}, {"command": "ls", "cmd": "pwd"},
                   {"command": '{"command": "ls"}'}, {"command": "ls", "args": True}, {"argv": ["ls"], "args": "x"},
                   {"command": "ls", "args": {"a": 1}}, {"command": "ls", "args": [["x"]]}, {"argv": False}]
        told, outcome = self.answers(*unclear, {"command": "ls"})
        for given, answer in zip(unclear, told):
            with self.subTest(given=given):
                self.assertRegex(answer, r'^failed: .*(\{"command": "ls -la \| head"\}|give one)')
                self.assertNotIn("\n", answer)
        self.assertEqual(len(outcome.steps), 1)
        self.assertTrue((self.workspace / "x").is_dir())

    def test_in_a_job_a_command_is_a_program(self):
        for arguments in ({"command": "ls x"}, {"cmd": "ls x"}):
            self.assert_end(self.run_steps(self.step("run_command", **arguments)), 2, "schema_validation")


class Unnamed(NaturalCallsCase):
    def test_arguments_that_are_those_of_one_tool_alone(self):
        fence = "```json\n%s\n```"
        command, end = '{"command": "echo hello"}', '{"answer": "All is done.", "status": "success"}'
        for form in FORMATS:
            with self.subTest(form):
                outcome, server = self.run_replies({"content": fence % command}, {"content": fence % end}, form=form)
                self.assert_answer(outcome, "All is done.")
                note = "(the reply named no tool; its arguments are those of run_command alone)"
                self.assertEqual(self.told(server, 1), f"[step-1]\n{note}\nhello\n")
                self.assert_end(self.run_job(self.agent_job(), "--replay", self.recording()), 0)


class Files(NaturalCallsCase):
    def test_other_names(self):
        self.put("a.txt", TEXT)
        real = str(self.workspace.resolve())
        told, outcome = self.answers(("read_file", {"file_path": "a.txt", "start_line": "2", "end_line": "2"}),
            ("cat", {"filename": "a.txt", "start_line": 2, "end_line": 2}),
            ("ReadFile", {"file_path": f"{real}/a.txt", "startLine": 2, "endLine": 2}),
            ("view", {"path": "a.txt", "view_range": [2, 2]}),
            ("ls", {"path": "."}), ("grep", {"query": "LINE 2", "glob": "*.txt", "ignore_case": "true"}),
            ("write", {"file_path": "b.txt", "content": "one\n"}),
            ("create_file", {"filename": "b.txt", "content": "two\n", "append": "true"}),
            ("edit_file", {"file_path": "b.txt", "old_string": "two", "new_string": "three"}),
            ("str_replace", {"path": "b.txt", "old_str": "one", "new_str": "1", "expected_count": "1"}),
            ("apply_patch", {"patch": "--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n 1\n-three\n+3\n"}))
        self.assertEqual({step["status"] for step in outcome.steps}, {"success"}, told)
        for answer in told[:4]:
            self.assertIn("line 2", answer)
            self.assertNotIn("line 3", answer)
        self.assertIn("a.txt:2:", told[5])
        self.assertEqual(self.text("b.txt"), "1\n3\n")
        self.assertEqual(self.run_arguments()[1]["start_line"], 2)

    def test_a_zero_where_numbers_begin_at_one_says_nothing(self):
        # Small models fill in all arguments.
        self.put("a.txt", TEXT)
        told, _ = self.answers(("read_file", {"path": "a.txt", "start_line": 0, "end_line": 0}),
                               ("replace_in_file",
                                {"path": "a.txt", "old_text": TEXT[:-1], "new_text": "new", "expected_count": 0}))
        self.assertRegex(told[0], r"^\[step-1\]\na.txt, lines 1 to ")
        self.assertEqual((told[1], self.text("a.txt")), ("[step-2]\nreplaced once in a.txt; now:\n1\tnew\n", "new\n"))

    def test_comments_are_left_out_and_other_unknown_fields_refused(self):
        # A call never runs without an argument that was written.
        self.put("a.txt", TEXT)
        told, outcome = self.answers(({"command": "echo hi", "explanation": "x", "description": "y"}),
                                     ("read_file", {"path": "a.txt", "offset": 3}),
                                     ("todo_add", {"title": "t", "priority": "high"}), ("read_file", {"pth": "a.txt"}),
                                     ("write_file", {"file": "b", "text": "x"}))
        self.assertEqual(told[0], '[step-1]\n(left out, for it changes nothing: "description" and "explanation")\nhi\n')
        self.assertRegex(told[1], r'^failed: offset: unknown field "offset"; did you mean "offset_bytes"\?; '
                         r"it has read_file \{path, start_line\?, end_line\?\}$")
        self.assertRegex(told[2], r'^failed: .*"priority".*; it has todo_add \{title, parent\?\}')
        self.assertRegex(told[3], r'^failed: .*path.* is missing.*"pth"')
        self.assertRegex(told[4], r'^failed: .*path.* is missing')
        self.assertEqual(len(outcome.steps), 1)

    def test_other_values(self):
        # Texts, single entries and near words for what the agent's own tools take.
        server = self.server(calls(("todo_add", {"title": "t"}), ("todo_update", {"id": 2, "status": "completed"}),
                                   ("run_command", {"command": "seq 100000"}),
                                   ("read_output", {"step": 1, "start_line": "50000", "end_line": 50001})),
                             call("finish", summary="all done",
                                  acceptance='[{"criterion": 1, "met": "true", "evidence": "step-1"}]'))
        outcome = self.run_agent(server, job=self.agent_job(context={"acceptance_criteria": ["c"]}))
        self.assert_answer(outcome, "all done")
        self.assertEqual(outcome.acceptance[0]["met"], True)
        self.assertEqual([item["status"] for item in outcome.result["todo"]["items"] if item["title"] == "t"], ["done"])


class Mistakes(NaturalCallsCase):
    WRONG = [call("write_file", wrong=1), call("nonesuch", a=2), call("read_file", path=[7]), runs(""),
             call("search_files"), call("list_tree", max_depth="deep"), call("todo_add"), call("read_output")]

    def test_five_in_a_row_are_answers(self):
        outcome, server = self.run_replies(*self.WRONG[:5], runs("true"), *self.WRONG[:5], finish("done"))
        self.assertEqual((outcome.exit, len(outcome.steps)), (0, 1), outcome.result)

    def test_from_the_sixth_on_they_cannot_be_read(self):
        outcome, server = self.run_replies(*self.WRONG, finish("done"))
        self.assertEqual(outcome.code, "agent_stuck", outcome.result)
        self.assertEqual(len(server.chats()), 8)

    def test_after_the_second_call_that_nobody_can_read_calls_are_asked_for_as_json(self):
        broken = calls(("write_file", '{"path": "a.txt", "content": "x'))
        for form in FORMATS:
            outcome, server = self.run_replies(broken, broken, as_json("write_file", path="a.txt", content="x"),
                                               as_json("finish", answer="ok"), form=form)
            self.assert_end(outcome, 0)
            self.assertRegex(self.told(server, 1), "^failed: the arguments cannot be read: .*; the form is "
                                                   r'\{"path":"\.\.\.","content":"\.\.\."\}$')
            self.assertEqual(["tools" in body for body in server.chats()], [True, True, False, False])

    def test_the_conversation_has_the_call_and_the_journal_what_was_run(self):
        server = self.server(call("bash", cmd="echo hi", timeout="5", why="test"), finish("done"))
        self.run_agent(server, form="openai")
        said = server.chats()[1]["messages"][-2]["tool_calls"][0]["function"]
        self.assertEqual(said,
                         {"name": "bash", "arguments": json.dumps({"cmd": "echo hi", "timeout": "5", "why": "test"})})
        self.assertEqual(self.run_arguments(), [{"shell": "echo hi", "timeout_seconds": 5, "working_dir": "."}])


class History(NaturalCallsCase):
    def test_servers_take_all_of_it(self):
        # They refuse an empty reply, and calls of tools that were not offered.
        replies = [{"content": ""}, calls(("open_browser", {"url": "x"})), calls(("", {})),
                   calls(("open browser", {}), ("list_tree", {})), {"content": " \n"}]
        for form in FORMATS:
            server = self.server(*replies, finish())
            self.assert_end(self.run_agent(server, form=form), 0)
            offered = {tool["function"]["name"] for tool in server.chats()[0]["tools"]}
            said = [message for message in server.chats()[-1]["messages"] if message["role"] == "assistant"]
            self.assertEqual(len(said), len(replies))
            for message in said:
                names = {call["function"]["name"] for call in message.get("tool_calls", [])}
                self.assertTrue(names or message["content"].strip(), message)
                self.assertLessEqual(names, offered)
            self.assertIn("unknown tool open_browser; the tools are", self.told(server, 2))
            self.assertIn("unknown tool open browser; the tools are", self.told(server, 4))
            self.assertEqual(len(self.tool_answers(server, 4)), 1)


class WhatIsSeen(NaturalCallsCase):
    def test_of_a_reply_that_says_nothing_or_cannot_be_read(self):
        cut = {"content": "ab", "done_reason": "length"}
        for reply, words in (({"content": "", "done_reason": "content_filter"}, 'ended .*"content_filter"'),
                             ({"content": "", "thinking": "Now."}, "thinking"), ({"content": ""}, "empty"),
                             ({"content": "\u200b\ufeff"}, "invisible characters"), (cut, "cut off")):
            with self.subTest(words):
                outcome, server = self.run_replies(reply, reply, reply, {"content": "never asked"}, form="openai")
                self.assertEqual((outcome.code, len(server.chats())), ("agent_stuck", 3))
                self.assertRegex(self.told(server, 1), words)
                flaw = "could not be read" if reply is cut else "said nothing"
                self.assertRegex(outcome.message, f"three replies in a row {flaw}; it would have been told: .*{words}")

    def test_of_a_command_and_a_text(self):
        told, _ = self.answers({"command": "mkdir -p x && cd x"},
                               {"command": "apply_patch <<'EOF'\n*** Begin Patch\nEOF"},
                               {"command": "no-such-program"}, ("write_file", {"path": "a", "content": r"one\ntwo\n"}))
        self.assertIn("\n(each command starts in the workspace, in a new shell: what cd did", told[0])
        self.assertIn('apply_patch is no program here, but a tool: call apply_unified_diff with {"diff":"..."}',
                      told[1])
        self.assertIn("command -v NAME", told[2])
        self.assertIn(r"(content holds \n as two characters", told[3])

    def test_of_lines_that_are_written_back_with_their_numbers(self):
        old = "# ports\nhost = a\nport = 1\n"
        for content, is_taken in (("2:host = a\n 3\tport = 1\n", False), ("3\tport = 1", False), ("3\tport = 2", True),
                                  ("1\t# ports\n2\thost = a\n3\tport = 1\n", True), ("2\n", True)):
            with self.subTest(content):
                self.put("conf", old)
                _, told = self.answers(("read_file", {"path": "conf"}),
                                       ("write_file", {"path": "conf", "content": content}))[0]
                self.assertEqual(self.text("conf"), content if is_taken else old)
                self.assertEqual("of the 3 lines of conf, with the numbers" in told, not is_taken, told)


sba.main(__name__)
