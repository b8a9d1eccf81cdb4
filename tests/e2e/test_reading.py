# SPDX-License-Identifier: Apache-2.0
"""What a model reads: numbered lines and the range that is shown, cuts named in lines, and advice after a failure."""
import re

import sba
from agent_case import AgentCase, call, calls, finish, runs, writes


class ReadingCase(AgentCase):
    def told(self, *list_of_calls, **job):
        outcome, server = self.run_replies(calls(*list_of_calls), finish("ok"), finish("ok"), job=self.agent_job(**job))
        self.assertTrue(outcome.steps or not list_of_calls, outcome.result)
        answers = [answer.split("\n\nTime left:")[0] for answer in self.tool_answers(server, 1)]
        self.assertEqual(len(answers), len(list_of_calls))
        return [re.sub(r"^\[step-\d+\]\n", "", answer) for answer in answers]


class Files(ReadingCase):
    def test_lines_have_numbers(self):
        self.put("a", "one\n\ttwo\n\nfour")
        self.put("empty"), self.put("crlf", "a\r\nb\r\n")
        told = self.told(("read_file", {"path": "a"}), ("read_file", {"path": "a", "start_line": 2, "end_line": 3}),
                         ("read_file", {"path": "a", "start_line": 5}), ("read_file", {"path": "empty"}),
                         ("read_file", {"path": "a", "end_line": 99}),
                         ("read_file", {"path": "crlf"}), ("read_file", {"path": "a", "start_line": 4}))
        self.assertEqual(told, ["a, lines 1 to 4 of 4; no newline at the end\n1\tone\n2\t\ttwo\n3\t\n4\tfour\n",
                                "a, lines 2 to 3 of 4\n2\t\ttwo\n3\t\n", "a has only 4 lines", "empty is empty",
                                "a, lines 1 to 4 of 4; no newline at the end\n1\tone\n2\t\ttwo\n3\t\n4\tfour\n",
                                "crlf, lines 1 to 2 of 2\n1\ta\r\n2\tb\r\n",
                                "a, lines 4 to 4 of 4; no newline at the end\n4\tfour\n"])

    def test_a_long_file_is_read_in_parts(self):
        lines = [f"line {number} {'x' * (number % 50)}" for number in range(1, 3001)]
        self.put("a", "\n".join(lines) + "\n")
        start, read = 1, []
        while start <= 3000:
            answer = self.told(("read_file", {"path": "a", "start_line": start}))[0]
            self.assertLessEqual(len(answer), 16 * 1024)
            head, *body = answer.rstrip("\n").split("\n")
            first, last, more = re.fullmatch(r"a, lines (\d+) to (\d+) of 3000(?:; start_line (\d+) reads on)?",
                                             head).groups()
            self.assertEqual((int(first), len(body)), (start, int(last) - start + 1))
            self.assertEqual(more, str(int(last) + 1) if int(last) < 3000 else None)
            read += [line.split("\t", 1)[1] for line in body]
            start = int(last) + 1
        self.assertEqual(read, lines)

    def test_one_line_without_end(self):
        self.put("a", "head\n" + "z" * 300000 + "\ntail\n")
        told = self.told(("read_file", {"path": "a"}), ("read_file", {"path": "a", "offset_bytes": 299000}),
                         ("read_file", {"path": "a", "start_line": 2}))
        for answer in told:
            self.assertLessEqual(len(answer), 16 * 1024)
        cut = re.escape("[... 298000 bytes of this line left out ...]")
        self.assertRegex(told[0], rf"^a, lines 1 to 3 of 3\n1\thead\n2\tz{{2000}} {cut}\n3\ttail\n$")
        self.assertRegex(told[1], r"^a, bytes 299000 to \d+ of 300011\nz+\ntail\n$")

    def test_what_is_no_text(self):
        self.put("a", b"\x7fELF\x00\xff" * 100)
        (answer,) = self.told(("read_file", {"path": "a"}))
        self.assertRegex(answer, r"^a is not text, but 600 bytes.*run_command")


class Cuts(ReadingCase):
    WHOLE = "".join(f"{number}\n" for number in range(1, 100001))

    def test_they_are_named_in_lines_and_can_be_read(self):
        first = self.told(("run_command", {"command": "seq 100000"}))[0]
        self.assertLessEqual(len(first), 16 * 1024)
        cut = re.search(r"\n\[\.\.\. lines (\d+) to (\d+) of 100000 left out \((\d+) bytes\); "
                        r'read_output \{"step": "step-1", "start_line": \1\} gives them \.\.\.\]\n', first)
        begin, end, size = map(int, cut.groups())
        self.assertTrue(first.startswith("1\n2\n") and first.endswith("\n100000\n"))
        self.assert_says(first, f"\n{begin - 1}\n[... ", f" ...]\n{end + 1}\n")
        self.assertEqual(size, sum(len(str(number)) + 1 for number in range(begin, end + 1)))
        told = self.told(("run_command", {"command": "seq 100000"}), ("read_output", {"step": "step-1"}),
                         ("read_output", {"step": "step-1", "start_line": 50000, "end_line": 50002}),
                         ("read_output", {"step": "step-1", "start_line": 100001}),
                         ("read_output", {"step": "step-1", "offset_bytes": 300000, "max_bytes": 10}),
                         ("read_output", {"step": "step-2"}))
        self.assertRegex(told[1],
                         rf"^\[lines {begin} to \d+ of 100000; start_line \d+ reads on\]\n{begin}\n{begin + 1}\n")
        self.assertRegex(told[2], r"^\[lines 50000 to 50002 of 100000\]\n50000\n50001\n50002\n$")
        self.assertRegex(told[3], r"^failed: the result of step-1 has only 100000 lines")
        self.assertEqual(told[4], f"{self.WHOLE[300000:300010]}\n[bytes 300000 to 300010 of {len(self.WHOLE)}]")
        self.assertRegex(told[5], r"^failed: nothing was left out of the result of step-2")

    def test_more_than_the_job_lets_a_step_print(self):
        # Its end is what a model needs of a build's output, and that something is missing.
        for limit in (200, 2000, 200000):
            for command in ("seq 100000", "seq 100000 >&2", "seq 100000; exit 3"):
                answer = self.told(("run_command", {"command": command}), max_output_bytes=limit)[0]
                self.assertLessEqual(len(answer), limit)
                self.assertRegex(answer, r"\[\.\.\. .*left out.* \.\.\.\]\n")
                self.assertTrue(answer.endswith("\n99999\n100000\n"), (limit, command, answer[-80:]))
                if limit < 16384 and "exit" not in command:
                    self.assertRegex(answer, rf"^1\n2\n(?s:.*)\n\[\.\.\. 58\d+ of {len(self.WHOLE)} bytes left out")

    def test_a_short_result_can_be_read_again(self):
        # The conversation may shorten it later.
        told = self.told(("run_command", {"command": "seq 1000"}),
                         ("read_output", {"step": "step-1", "start_line": 999}))
        self.assertEqual(told[1], "[lines 999 to 1000 of 1000]\n999\n1000\n")


class Failures(ReadingCase):
    def test_each_says_what_to_do_next(self):
        self.put("src/main.c", "int main(void)\n{\n}\n")
        self.put("many", "a\n" * 9)
        wanted = [("read_file", {"path": "main.c"}, "list_tree.*find . -name main.c"),
                  ("read_file", {"path": "src"}, "list_tree"),
                  ("read_file", {"path": "/etc/passwd"}, "run_command"), ("list_tree", {"path": "none"}, "list_tree"),
                  ("search_files", {"path": "none", "pattern": "a"}, "list_tree"),
                  ("write_file", {"path": "many", "content": "x", "overwrite": False}, "replace_in_file.*overwrite"),
                  ("write_file", {"path": "many/x", "content": "x"}, "part of the path is a file"),
                  ("replace_in_file", {"path": "none", "old_text": "a", "new_text": "b"}, "write_file"),
                  ("replace_in_file", {"path": "many", "old_text": "zzz", "new_text": "b"}, "read_file"),
                  ("replace_in_file", {"path": "many", "old_text": "a", "new_text": "b"},
                   "lines 1, 2, 3.*expected_count"),
                  ("apply_unified_diff", {"diff": "hello"}, "replace_in_file"),
                  ("apply_unified_diff", {"diff": "--- a/many\n+++ b/many\n@@ -1 +1 @@\n-z\n+y\n"},
                   "read_file.*replace_in_file"),
                  ("run_command", {"command": "sleep 9", "timeout_seconds": 0.2}, "timeout_seconds"),
                  ("run_command", {"command": "no_such_program"}, "command -v"),
                  ("run_command", {"command": "cd src"}, "each command starts in the workspace"),
                  ("run_command", {"command": "./many"}, "chmod"),
                  ("run_command", {"command": "ls", "working_dir": "none"}, "list_tree"),
                  ("read_output", {"step": "step-99"}, "no such step"),
                  ("todo_update", {"id": "9"}, "the list is empty"),
                  ("read_file", {}, r"read_file \{path, start_line\?, end_line\?\}"),
                  ("search_files", {"pattern": "("}, "parenthesis")]
        told = self.told(*[one[:2] for one in wanted])
        for (name, arguments, words), answer in zip(wanted, told):
            with self.subTest(name, arguments=arguments):
                self.assertRegex(answer.split("\n")[0], rf"^failed.*{words}")

    def test_a_file_that_was_not_seen_is_not_replaced(self):
        # The answer shows it, and the next call replaces it. Files that a step or the first message showed are replaced
        # at once, but not one whose name ends theirs.
        for name in ("old.txt", "read.txt", "named.txt", "printed.txt", "d.txt", "workspace"):
            self.put(name, f"{name} holds this\n")
        written = "old.txt", "old.txt", "read.txt", "named.txt", "printed.txt", "d.txt", "workspace"
        turns = [call("read_file", path="read.txt"), runs("cat printed.txt"),
                 *[writes(name, "new\n") for name in written], *[writes("made.txt", content) for content in "ab"]]
        outcome, server = self.run_replies(*turns, finish("ok"), context={"task_context": "Change named.txt."})
        self.assertEqual([step["status"][0].upper() for step in outcome.steps], list("SSFSSSSFFSS"))
        self.assertRegex(server.chats()[3]["messages"][-1]["content"],
                         r"^\[step-3\]\nfailed \(already_exists\).*overwrite true all of it\nold.txt holds this\n")
        self.assertEqual((self.text("old.txt"), self.text("made.txt")), ("new\n", "b"))

    def test_a_name_that_JSON_escapes_is_known_once_it_was_shown(self):
        self.put('a "b" \\.txt', "old")
        write = call("write_file", path='a "b" \\.txt', content="new")
        outcome, _ = self.run_replies(write, write, finish("ok"))
        self.assertEqual([step["status"] for step in outcome.steps], ["failure", "success"])

    def test_a_tool_that_does_not_exist_is_no_call_in_the_history(self):
        # Servers refuse a call of a tool that they were not told of.
        _, server = self.run_replies(calls(("no_such_tool", {}), ("list_tree", {})), finish("ok"), finish("ok"))
        *_, answer = messages = server.chats()[1]["messages"]
        self.assertRegex(answer["content"], "\nfailed: unknown tool no_such_tool; the tools are .*run_command")
        self.assertEqual(answer["role"], "tool")  # Mistral's template refuses a message of the user after a result
        called = [each["function"]["name"] for message in messages for each in message.get("tool_calls", [])]
        self.assertEqual(called, ["list_tree"])

    def test_bash_where_there_is_none(self):
        server = self.server(runs("[[ a ]]"), finish("ok"))
        self.run_agent(server, env={"PATH": "/nowhere"})
        self.assertIn("there is no bash", server.chats()[1]["messages"][-1]["content"])


sba.main(__name__)
