# SPDX-License-Identifier: Apache-2.0
"""Agent jobs with small local models: they go round in circles, repeat one word for ever, and have small windows."""
import json

import sba
from agent_case import FORMATS, LIST, AgentCase, as_json, call, finish, runs, writes
from servers import model, tokens


class Circles(AgentCase):
    def test_a_todo_item_that_is_added_again_and_again(self):
        server = self.server(*[call("todo_add", title="Look around"), call("todo_add", title=" look around")] * 5)
        outcome = self.run_agent(server)
        self.assertEqual([item["title"] for item in outcome.result["todo"]["items"]], ["Look around"])
        self.assertIn("item 1: pending; it was in the list before", json.dumps(server.chats()[2]))
        self.assertEqual(outcome.code, "agent_stuck", outcome.result)

    def test_the_same_call_with_the_same_result_four_times(self):
        for form in FORMATS:
            outcome, server = self.run_replies(*[call("run_command", shell="exit 1")] * 9, form=form)
            self.assertEqual((outcome.code, len(server.chats())), ("agent_stuck", 4), outcome.result)
            bodies = [body["options"] if form == "ollama" else body for body in server.chats()]
            self.assertEqual([body.get("temperature") for body in bodies], [None, None, 1.0, 1.2])
            told = ["The same call gave the same result again and again" in body["messages"][-1]["content"]
                    for body in server.chats()]
            self.assertEqual(told, [False, False, False, True])


class Degenerate(AgentCase):
    """Streams that become one token or line over and over. Each would go on for megabytes."""
    SIZE = 1 << 17
    REPEATED = {"a token": "ha ", "a line": "I will now look into the file.\n", "a character": "0",
                "a paragraph": "".join(f"Line {number} of what is said again. " for number in range(20)) + "\n"}

    def assert_stopped(self, server, outcome, form, usual=None):
        self.assert_answer(outcome, "ok")
        first, second, third = server.chats()
        self.assertIn("Your reply was stopped: it repeated", second["messages"][-1]["content"])
        self.assertLess(len(json.dumps(second)), len(json.dumps(first)) + 6000)  # it is not led on by its own words
        self.assertEqual([(body["options"] if form == "ollama" else body).get("temperature")
                          for body in (second, third)], [1.0, usual])
        self.assertEqual([line["level"] for line in outcome.events("model.repetition")], ["warning"])

    def test_a_reply_that_repeats_itself_is_stopped(self):
        for form in FORMATS:
            for name, text in self.REPEATED.items():
                for field in ("content", "thinking"):
                    with self.subTest(form, name=name, field=field):
                        reply = {field: "Well. " + text * (self.SIZE // len(text)), "piece": len(text) - 1 or 1}
                        server = self.server(reply, LIST, finish("ok"))
                        self.assert_stopped(server, self.run_agent(server, form=form), form)

    def test_the_arguments_of_a_call(self):
        server = self.server(writes("a", "0" * (1 << 18)), LIST, finish("ok"))
        self.assert_stopped(server, self.run_agent(server, form="openai"), "openai")
        self.assertEqual(list(self.workspace.iterdir()), [])

    def test_three_replies_that_repeat_themselves_end_the_job(self):
        outcome, server = self.run_replies(*[{"content": "ha " * 10000}] * 4)
        self.assertEqual((outcome.code, len(server.chats())), ("agent_stuck", 3), outcome.result)
        self.assertIn("over and over", outcome.message)
        temperatures = [body["options"].get("temperature") for body in server.chats()]
        self.assertEqual(temperatures, [None, 1.0, 1.2])


class SmallWindows(AgentCase):
    """A server that counts as a real one does, and refuses what is longer than its window."""
    WINDOW = 4096
    # The same in each run.
    NOISE = "LC_ALL=C awk 'BEGIN { srand(1); while (n++ < 20000) printf \"%c\", 1 + int(rand() * 255) }'"
    OUTPUTS = {
        "numbers": "seq 20000", "hexadecimal": f"{NOISE} | od -An -tx1", "base64": f"{NOISE} | base64",
        "hindi": "yes 'काम करो और फ़ाइल पढ़ो।' | head -n 900", "chinese": "yes '请读取文件并修复错误。' | head -n 900",
        "listing": "ls -la /usr/bin", "prose": "yes 'The quick brown fox jumps over the lazy dog.' | head -n 900",
        "one line": "head -c 60000 /dev/zero | tr '\\0' x"}

    MODELS = {"m": {"capabilities": ["completion", "tools"], "context_length": WINDOW, "max_model_len": WINDOW,
                    "counts": True}}

    def assert_within(self, server, form, window):
        for body in server.chats():
            longest = body["options"]["num_predict"] if form == "ollama" else body["max_tokens"]
            self.assertLessEqual(tokens.of_request(body) + longest, window)
            self.assertGreaterEqual(longest, 256)

    def test_a_job_of_many_turns_whose_outputs_are_larger_than_the_window(self):
        long = "".join(f"line {number} of a long file\n" for number in range(150))
        for form in FORMATS:
            with self.subTest(form):
                replies = [call("run_command", shell=shell) for shell in self.OUTPUTS.values()]
                replies += [writes(f"{form}.txt", long), call("run_command", shell=f"grep -c line {form}.txt"),
                            call("read_output", step="step-1", offset_bytes=50000), finish("all seen")]
                outcome, server = self.run_replies(*replies, models=self.MODELS, form=form)
                self.assert_answer(outcome, "all seen")
                self.assertEqual((server.refused, len(outcome.steps)), (0, len(self.OUTPUTS) + 2))
                self.assert_within(server, form, self.WINDOW)

    def test_a_reply_that_fills_the_window_and_is_cut(self):
        long = "".join(f"Step {number}: I think of the next thing. " for number in range(250))
        for form in FORMATS:
            server = self.server({"content": long, "done_reason": "length"}, LIST, finish("ok"), models=self.MODELS)
            outcome = self.run_agent(server, form=form)
            self.assertEqual((outcome.exit, server.refused), (0, 0), outcome.result)
            self.assert_within(server, form, self.WINDOW)

    def test_a_refusal_says_how_much_there_was(self):
        job = self.agent_job(context={"task_context": "word " * 1000})
        server = self.server(*[call("run_command", shell=f"yes 'abc {number}' | head -c 9000") for number in range(4)],
                             finish("seen"), models={"m": {"max_model_len": 8192, "counts": True, "template": 1500}})
        self.assert_end(self.run_agent(server, form="openai", job=job), 0)
        self.assertLessEqual(server.refused, 1)

    def test_text_that_can_never_fit_is_said(self):
        models, context = {"m": {"context_length": 4096}}, {"task_context": "x" * 100000}
        outcome, _ = self.run_replies(model.ending(), models=models, context=context)
        self.assertEqual(outcome.code, "agent_stuck", outcome.message)
        self.assertIn("4096", outcome.message)

    def test_half_of_the_window_is_the_replys(self):
        for window, most in ((32768, 16384), (16384, 8192), (131072, 32768)):
            server = self.server(LIST, finish("ok"), models={"m": {"num_ctx": window, "context_length": window}})
            self.assertEqual(self.run_agent(server).exit, 0)
            self.assertEqual([body["options"]["num_predict"] for body in server.chats()], [most] * 2)


class ToolsThatAreShown(AgentCase):
    def shown(self, server):
        return [[tool["function"]["name"] for tool in body["tools"]] for body in server.chats()]

    def test_read_output_is_shown_when_something_was_left_out(self):
        # With a small context a model calls what it is shown, whether it helps or not.
        replies = runs("seq 3"), runs("seq 90000"), call("read_output", step="step-2"), finish("ok")
        for length, first in ((8192, False), (32768, True)):
            server = self.server(*replies, models={"m": {"context_length": length, "num_ctx": length}})
            self.assert_answer(self.run_agent(server), "ok")
            self.assertEqual(["read_output" in names for names in self.shown(server)], [first, first, True, True])
            self.assertEqual([names[-1] for names in self.shown(server)], ["finish"] * 4)
            self.assertRegex(self.told(server, 3), r"^\[lines \d+ to \d+ of 90000")

    def test_a_small_window_has_the_arguments_that_are_needed_and_no_time(self):
        # The next prompt then begins with all of this one. Near its end the job's time is told.
        for length, is_small in ((8192, True), (32768, False)):
            models = {"m": {"context_length": length, "num_ctx": length}}
            outcome, server = self.run_replies(runs("true"), finish("ok"), models=models)
            self.assert_answer(outcome, "ok")
            for body in server.chats():
                shown = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
                self.assertEqual(list(shown["write_file"]["properties"]) == ["path", "content"], is_small)
                self.assertEqual("Time left:" in body["messages"][-1]["content"], not is_small)
        # After the command 2 of 11 seconds are left, less what the start took.
        job, small = self.agent_job(max_runtime_seconds=11), {"m": {"context_length": 8192, "num_ctx": 8192}}
        outcome, server = self.run_replies(runs("sleep 9"), finish("ok"), job=job, models=small)
        self.assert_answer(outcome, "ok")
        self.assertIn("Less than a fifth of the job's time", server.chats()[1]["messages"][-1]["content"])


class ToolsThatAreLost(AgentCase):
    """Tools that a server leaves out in silence, or refuses in words that nobody knows."""
    LIST, FINISH = as_json("list_tree", path=""), as_json("finish", answer="ok")

    def assert_told_as_text(self, outcome, server, first):
        """The requests from that number on have no tools, and the job went well."""
        self.assert_answer(outcome, "ok")
        self.assertEqual(["tools" in body for body in server.chats()], [number < first for number in range(first + 2)])
        self.assertEqual(outcome.result["inference"]["requests"], first + 2)

    def test_a_template_that_has_no_place_for_tools_is_known_before(self):
        props = {"chat_template_caps": {"supports_tools": False, "supports_tool_calls": False},
                 "default_generation_settings": {"n_ctx": 9000}}
        outcome, server = self.run_replies(self.LIST, self.FINISH, models={"m": {"props": props, "drops_tools": True}},
                                           formats=["openai"], form="openai")
        self.assert_told_as_text(outcome, server, 0)
        self.assertLess(server.chats()[0]["max_tokens"], 9000)

    def test_a_temperature_that_nobody_chose_is_lowered(self):
        # llama.cpp takes 0.8 where weights name none. What they name stays, and a model that thinks is left alone.
        for chosen, template, sent in ((0.8, "{{ x }}", 0.2), (0.6, "{{ x }}", None), (0.8, "<think>", None)):
            props = {"chat_template": template,
                     "default_generation_settings": {"n_ctx": 9000, "params": {"temperature": chosen}}}
            server = self.server(LIST, finish("ok"), models={"m": {"props": props}}, formats=["openai"])
            self.assertEqual(self.run_agent(server, form="openai").exit, 0)
            self.assertEqual([body.get("temperature") for body in server.chats()], [sent] * 2)

    def test_a_count_far_below_the_tools_size_shows_it(self):
        # A count that has the tools in it does not, and none after a call.
        window = {"context_length": 32768, "max_model_len": 32768}
        models = {"m": {"drops_tools": True, "counts": True, "capabilities": None, **window}}
        prose = {"content": "Of course! To begin, one would look into the workspace."}
        for form in FORMATS:
            with self.subTest(form):
                server = self.server(prose, self.LIST, self.FINISH, models=models)
                self.assert_told_as_text(self.run_agent(server, form=form), server, 1)
                outcome, server = self.run_replies(prose, {"fault": "unauthorized"}, models=models, form=form)
                self.assertEqual((outcome.code, len(server.chats())), ("inference_unavailable", 2))
                self.assertEqual(outcome.result["inference"]["requests"], 1)
                server = self.server(prose, LIST, {**prose, "prompt_tokens": 5}, finish("ok"),
                                     models={"m": {**models["m"], "drops_tools": False}})
                self.assertEqual(self.run_agent(server, form=form).exit, 0)
                self.assertTrue(all("tools" in body for body in server.chats()))

    def test_a_refusal_in_unknown_words_tries_the_tools_as_text_and_once_more_as_tools(self):
        for form in FORMATS:
            for status, natively in ((400, [2, 1]), (422, [2, 1]), (500, [2, 2])):
                with self.subTest(form, status=status):
                    refused = [status, "Value is not callable: null at row 23"]
                    models = {"m": {"capabilities": None, "refuses_tools": refused}}
                    server = self.server(self.LIST, self.LIST, self.FINISH, models=models)
                    self.assertEqual(self.run_agent(server, form=form).exit, 0)
                    told = ["tools" in body for body in server.chats()]
                    self.assertEqual(told, [True] * natively[0] + [False] + [True] * natively[1] + [False, False])


class BoundReplies(AgentCase):
    """Every reply is bound by a branch for each tool."""
    MODELS = {"m": {"capabilities": ["completion"], "context_length": 32768}}

    def test_a_server_that_makes_no_grammar_of_it(self):
        outcome, server = self.run_replies(ToolsThatAreLost.LIST, ToolsThatAreLost.FINISH,
                                           models={"m": {"capabilities": ["completion"], "refuses_grammar": True}})
        self.assertEqual((outcome.exit, ["format" in body for body in server.chats()]), (0, [True, False, False]),
                         outcome.result)

    def test_a_long_text_is_written_at_once(self):
        whole = "".join(f"{number:5}" for number in range(3000))
        written = as_json("write_file", path="a", content=whole)
        outcome, server = self.run_replies(written, ToolsThatAreLost.FINISH, models=self.MODELS)
        self.assertEqual((outcome.exit, self.text("a")), (0, whole), outcome.result)


class CallsAsText(AgentCase):
    """The server does not know how its model writes calls; calls_spec.lua has all forms. C is the command."""
    JSON = '{"name": "run_command", "arguments": {"command": "C"}}'
    READ = {
        "Hermes": f"<tool_call>\n{JSON}\n</tool_call>",
        "a fence after a sentence": f"First, I will create it:\n\n```json\n{JSON}\n```",
        "Qwen 3 Coder": "<tool_call>\n<function=run_command>\n<parameter=command>\nC\n</parameter>\n</function>\n"
                        "</tool_call>",
        "Mistral, newer": '[TOOL_CALLS]run_command[ARGS]{"command": "C"}',
    }
    TOLD = {
        "Gemma": '```tool_code\nrun_command(command="C")\n```', "a shell fence": "```bash\nC\n```",
        "a tool there is not": '<tool_call>{"name": "frobnicate", "arguments": {}}</tool_call>',
        "a result of its own": f"<tool_call>{JSON}</tool_call>\nThe file was created."}
    COMMAND = "echo made >> made.txt"

    def made(self):
        path = self.workspace / "made.txt"
        lines = path.read_text() if path.exists() else ""
        path.unlink(missing_ok=True)
        return lines

    def test_usual_forms_are_read(self):
        for number, (name, written) in enumerate(self.READ.items()):
            with self.subTest(name):
                server = self.server({"content": written.replace("C", self.COMMAND, 1) if '"C"' not in written
                                      else written.replace('"C"', json.dumps(self.COMMAND))}, finish("ok"))
                outcome = self.run_agent(server, form=list(FORMATS)[number % 2])
                self.assertEqual((outcome.exit, len(server.chats()), self.made()), (0, 2, "made\n"), outcome.result)

    def test_other_forms_are_told_the_right_one_and_then_asked_for_as_json(self):
        in_json = as_json("run_command", command=self.COMMAND)
        for number, (name, written) in enumerate(self.TOLD.items()):
            with self.subTest(name):
                server = self.server({"content": written}, {"content": written}, in_json, ToolsThatAreLost.FINISH)
                outcome = self.run_agent(server, form=list(FORMATS)[number % 2])
                self.assertEqual((outcome.exit, self.made()), (0, "made\n"), outcome.result)
                self.assert_says(self.told(server, 1), "it looks like a call, but", '<tool_call>{"name": ')
                self.assertEqual(["tools" in body for body in server.chats()], [True, True, False, False])
                self.assertIn("one JSON object", server.chats()[2]["messages"][0]["content"])

    def test_what_the_model_learns_from_the_answer_is_read(self):
        outcome, server = self.run_replies({"content": self.TOLD["a shell fence"]},
                                           {"content": self.READ["Hermes"].replace("C", "true")}, finish("ok"))
        self.assertEqual((outcome.exit, len(outcome.steps)), (0, 1), outcome.result)
        self.assertTrue(all("tools" in body for body in server.chats()))
        self.assertEqual(self.run_job(self.agent_job(), "--replay", self.recording()).exit, 0)


class Edits(AgentCase):
    def test_lines_are_to_be_copied_where_some_are_shown(self):
        self.put("a", "get(1)\n")
        edit = {"path": "a", "old_text": "get(2)", "new_text": "x"}
        twice = edit | {"old_text": "get", "expected_count": 2}
        _, server = self.run_replies(call("replace_in_file", **edit), call("replace_in_file", **twice), finish())
        self.assertRegex(self.told(server, 1), r"copy the lines as they are there[^\n]*\n +1  get\(1\)\n")
        self.assertRegex(self.told(server, 2), r"once \(line 1\); .*expected_count 1, if no other place is meant\n?$")


class RepliesWithoutCalls(AgentCase):
    LOOK = {"content": json.dumps({"name": "list_tree", "arguments": {}})}
    FORM = r"""^Your reply was empty\. .*call finish: \{"%s": "finish", "arguments": \{"answer": """

    def test_after_two_in_a_row_calls_are_asked_for_as_json_where_the_server_reads_none(self):
        for said in ({"content": "I would look."}, {"content": ""}):
            with self.subTest(said):
                server = self.server(self.LOOK, said, self.LOOK, said, said, self.LOOK, ToolsThatAreLost.FINISH)
                self.assert_end(self.run_agent(server, form="openai"), 0)
                self.assertEqual(["tools" in body for body in server.chats()], [True] * 5 + [False] * 2)
                self.assertTrue(all("response_format" in body for body in server.chats()[5:]))
                self.assertIn("expected_count", json.dumps(server.chats()[5]["response_format"]))
                self.assertFalse(any("tool_choice" in body for body in server.chats()))

    def test_a_model_whose_calls_the_server_reads_keeps_its_tools(self):
        server = self.server(LIST, {"content": ""}, {"content": ""}, finish("ok"))
        self.assert_end(self.run_agent(server, form="openai"), 0)
        self.assertTrue(all("tools" in body for body in server.chats()))

    def test_the_form_of_a_call_is_told(self):
        server = self.server(self.LOOK, {"content": ""}, {"content": "(nothing)"}, {"content": ""})
        self.assert_end(self.run_agent(server, form="openai"), 1, "agent_stuck")
        self.assertRegex(self.told(server, 2), self.FORM % "name")

    def test_after_a_call_that_failed_its_own_form_is_told_and_not_the_one_of_finish(self):
        edit = call("replace_in_file", path="none", old_text="a", new_text="b", expected_count=1)
        both = {"tool_calls": edit["tool_calls"] + call("list_tree")["tool_calls"]}
        server = self.server(edit, {"content": ""}, both, {"content": ""}, finish("ok"))
        self.assert_end(self.run_agent(server, form="openai"), 0)
        self.assertRegex(self.told(server, 2), r'Your last call, of replace_in_file, failed: .*'
                                               r'\{"name": "replace_in_file", "arguments": \{"path":"')
        self.assertNotIn("what you did and what you ran", self.told(server, 2))
        self.assertRegex(self.told(server, -1), self.FORM % "name")


sba.main(__name__)
