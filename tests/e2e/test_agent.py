# SPDX-License-Identifier: Apache-2.0
"""Agent jobs: the binary, a scripted model server that speaks the real wire formats, and real tools."""
import itertools
import json
import signal

import sba
from agent_case import FORMATS, LIST, AgentCase, call, calls, finish, runs, writes
from servers import model


def tools_of(body):
    """The arguments that a request shows of each tool."""
    return {tool["function"]["name"]: tool["function"]["parameters"]["properties"] for tool in body["tools"]}


class TheLoop(AgentCase):
    def test_tools_work_in_the_workspace_in_both_formats(self):
        for form in FORMATS:
            with self.subTest(form):
                name = f"{form}.txt"
                turns = writes(name, "hello"), call("run_command", argv=["cat", name])
                outcome, server = self.run_replies(*turns, finish("It says hello."), form=form)
                self.assert_answer(outcome, "It says hello.")
                self.assertEqual([(step["id"], step["type"], step["status"]) for step in outcome.steps],
                                 [("step-1", "write_file", "success"), ("step-2", "run_command", "success")])
                self.assertEqual(self.text(name), "hello")
                inference = outcome.result["inference"]
                self.assertEqual((inference["model"], inference["requests"]), ("m", 3))
                self.assertTrue(outcome.result["inference_used"])
                self.assertIn("hello", json.dumps(server.chats()[2]))

    def test_a_model_outside_the_list_is_never_named(self):
        outcome, server = self.run_replies({"content": "x"}, models={"other": {}}, env={"INFERENCE_MODEL": "other"})
        self.assertEqual(outcome.code, "inference_unavailable")
        self.assertNotIn("other", json.dumps([request["body"] for request in server.requests]))

    def test_a_failing_tool_is_an_answer(self):
        outside, exits = call("read_file", path="../outside"), call("run_command", shell="exit 3")
        outcome, server = self.run_replies(outside, exits, finish())
        self.assert_end(outcome, 0)
        self.assertEqual(outcome.statuses, ["failure", "failure"])
        self.assertIn("path escapes workspace", self.told(server, 1))
        levels = [line["level"] for line in outcome.events("step.finished")]
        self.assertEqual(levels, ["info", "info"], "nothing is wrong with the job")
        for line in outcome.events("model.response"):
            for name in ("prompt_tokens", "completion_tokens", "duration_ms"):
                self.assertIsInstance(line[name], int, name)

    def test_model_output_events(self):
        slow = {"content": "correct-horse-battery, I think",
                "fault": {"name": "pause", "seconds": 2.5 * sba.slowness()}}
        def run(reply, *more):
            server = self.server(reply, model.ending())
            outcome = self.run_agent(server, *more, env={"SBA_MCP_TOKEN": "correct-horse-battery"})
            return outcome, outcome.events("model.output")

        outcome, told = run(slow)
        self.assertEqual("".join(line["output"] for line in told), "", "held: it may be the token")
        events = [line["event"] for line in outcome.log]
        self.assertLess(events.index("model.request"), events.index("model.response"))
        _, told = run({**slow, "content": "I think it is"})
        self.assertTrue("I think it is".startswith(told[0]["output"]) and told[0]["output"], told)
        self.assertEqual(told[0]["model"], "m")
        _, told = run(slow, "--follow", "--log-format", "json")
        self.assertEqual("".join(line["output"] for line in told), "[redacted], I think")
        outcome, _ = run(slow, "--follow")
        shown = r"> model  m\n(> model  m  \d+ s\n)*    \[redacted\], I think\n"  # and how long it takes
        self.assertRegex(outcome.stderr.decode(), shown)

    def test_the_prompt_ends_with_time_and_todo_list_and_begins_the_same(self):
        turns = call("todo_add", title="look around"), call("todo_update", id="2", status="done"), model.ending()
        context = {"requirements": ["be good"], "task_context": "TASK"}
        outcome, server = self.run_replies(*turns, job=self.agent_job(context=context, persona={"title": "A tester"}))
        first, last = server.chats()[0]["messages"], server.chats()[2]["messages"]
        self.assertTrue(first[0]["content"].startswith("## Persona\n\nA tester"))
        self.assertEqual(first[0], last[0])
        self.assertTrue(first[1]["content"].startswith(last[1]["content"] + "\n\nTime left:"))
        self.assertEqual(last[-1]["role"], "tool")
        self.assertRegex(last[-1]["content"], r"Time left:[^\[]*\[ \] 1 be good\n\[x\] 2 look around")
        self.assertEqual([item["title"] for item in outcome.result["todo"]["items"]], ["be good", "look around"])
        self.assertEqual(self.todo_items(), outcome.result["todo"]["items"])

    def test_a_template_whose_roles_must_alternate_takes_the_whole_job(self):
        end = {"content": '{"tool": "finish", "arguments": {"answer": "ok"}}'}
        for form, has_tools in itertools.product(FORMATS, (True, False)):
            with self.subTest(form, has_tools=has_tools):
                capabilities = ["completion", "tools"] if has_tools else ["completion"]
                models = {"m": {"capabilities": capabilities, "tools": has_tools, "alternates": True}}
                turn = LIST if has_tools else {"content": '{"tool": "list_tree", "arguments": {}}'}
                outcome, server = self.run_replies(turn, {"content": ""}, turn, end, models=models, form=form)
                self.assert_answer(outcome, "ok")
                for request in server.chats():
                    self.assertIn("Time left:", request["messages"][-1]["content"])

    def test_a_call_that_its_server_cannot_parse_is_an_answer_to_the_model(self):
        peg = "The model produced output that does not match the expected peg-native format"
        faults = ({"name": "call_unparsed"}, {"name": "call_unparsed", "text": peg},
                  {"name": "error_midstream", "text": "error parsing tool call: raw='x'"})
        for form, fault in itertools.product(FORMATS, faults):
            with self.subTest(form, fault=fault["name"]):
                unparsed = {"content": "so so so so", "fault": fault}
                outcome, server = self.run_replies(unparsed, LIST, finish(), form=form)
                self.assertEqual((outcome.exit, len(server.chats())), (0, 3), outcome.result)
                self.assertIn("could not parse the tool call", self.told(server, 1))
                self.assertEqual(outcome.events("model.retry"), [])


class Commands(AgentCase):
    def told_of(self, shell, **options):
        outcome, server = self.run_replies(call("run_command", shell=shell), finish(), **options)
        self.assert_end(outcome, 0)
        return self.told(server, 1).removeprefix("[step-1]\n")

    @sba.wants("bash")
    def test_a_models_lines_run_in_bash_and_checks_in_sh(self):
        self.assertEqual(self.told_of("[[ ab == a* ]] && echo ${0##*/}"), "bash\n")
        _, server = self.run_replies(finish(), finish())
        self.assertRegex(server.chats()[0]["messages"][1]["content"], r"Shell: \S+/bash\n")
        context = {"acceptance_criteria": [{"criterion": "c", "check": {"shell": "test $0 = /bin/sh"}}]}
        self.assertEqual(self.told_of("echo ${0##*/}", context=context), "bash\n")
        self.assertEqual(self.run_steps(self.sh("echo $0")).steps[0]["output"], "/bin/sh\n")

    def test_pagers_and_prompts_are_off(self):
        shell = "echo $PAGER $GIT_PAGER $GIT_EDITOR $CI $DEBIAN_FRONTEND $PIP_PROGRESS_BAR"
        self.assertEqual(self.told_of(shell), "cat cat true 1 noninteractive off\n")
        changed = self.told_of(shell, env={"CI": "no", "GIT_EDITOR": "ed"})
        self.assertEqual(changed, "cat cat ed no noninteractive off\n")
        self.assertEqual(self.run_steps(self.sh("echo [$PAGER]")).steps[0]["output"], "[]\n")

    def test_a_command_that_takes_too_long_says_what_it_printed_and_what_helps(self):
        _, server = self.run_replies(runs("echo begun; sleep 60", timeout_seconds=1), finish())
        self.assertRegex(self.told(server, 1),
                         r"ran longer than its timeout of 1 s.*give a larger timeout_seconds[^\n]*\nbegun\n")
        self.assertIn("120", tools_of(server.chats()[0])["run_command"]["timeout_seconds"]["description"])


class Tools(AgentCase):
    def shown(self, context=None, length=32768):
        models = {"m": {"context_length": length}}
        _, server = self.run_replies(finish(), finish(), models=models, context=context or {})
        body = server.chats()[0]
        return tools_of(body), body

    def test_apply_unified_diff_is_taken_and_not_shown(self):
        tools, body = self.shown()
        self.assertEqual((next(iter(tools)), "apply_unified_diff" in tools), ("run_command", False))
        self.assertLess(len(json.dumps(body["tools"])), 4000, "about 1,200 tokens")
        self.put("a", "1\n")
        outcome, _ = self.run_replies(call("apply_patch", diff="--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"), finish())
        self.assert_end(outcome, 0)
        self.assertEqual(self.text("a"), "2\n")

    def test_the_todo_list_is_for_jobs_with_items_and_roomy_models(self):
        some = {"requirements": ["r"]}
        for context, length, has_list in (({}, 32768, True), ({}, 16384, False), (some, 16384, True)):
            tools, body = self.shown(context, length)
            first, *_, last = (message["content"] for message in body["messages"])
            self.assertEqual(["todo_add" in tools, "Todo list:" in last, "todo list" in first], [has_list] * 3)

    def test_finish_speaks_of_criteria_where_there_are_some_to_judge(self):
        checked = {"criterion": "c", "check": {"shell": "true"}}
        for criteria, has_some in (([], False), ([checked], False), (["c"], True), ([checked, "c"], True)):
            tools, _ = self.shown({"acceptance_criteria": criteria})
            self.assertEqual("acceptance" in tools["finish"], has_some)


class Budget(AgentCase):
    def job_with(self, **inference):
        job = self.agent_job()
        job["inference"].update(inference)
        return job

    def assert_warned(self, server, what):
        # The model is told in the fifth request, and not before, that there is little left.
        ends = [request["messages"][-1]["content"] for request in server.chats()]
        is_told = [f"Less than a fifth of the job's {what} is left" in end for end in ends]
        self.assertEqual(is_told, [False] * 4 + [True])

    def test_max_requests(self):
        look = [call("run_command", shell=f"echo {number}") for number in range(6)]
        outcome, server = self.run_replies(*look[:4], finish(), job=self.job_with(max_requests=5))
        self.assertEqual(outcome.exit, 0, "the last one counts")
        self.assert_warned(server, "requests")
        outcome, server = self.run_replies(*look, job=self.job_with(max_requests=5))
        self.assertEqual((outcome.exit, outcome.code, len(server.chats())), (1, "constraint_violation", 5))
        self.assertIn("inference.max_requests is reached: 5 of 5 requests", outcome.message)
        self.assertEqual(len(outcome.steps), 5)
        outcome = self.run_agent(server, "--resume", job=self.job_with(max_requests=5))
        self.assertEqual((outcome.code, len(server.chats())), ("constraint_violation", 5))

    def test_max_total_tokens(self):
        used = {"prompt_tokens": 900, "completion_tokens": 100}
        look = [{**call("run_command", shell=f"echo {number}"), **used} for number in range(9)]
        outcome, server = self.run_replies(*look, job=self.job_with(max_total_tokens=4500))
        self.assertEqual((outcome.code, len(server.chats())), ("constraint_violation", 5))
        self.assertIn("inference.max_total_tokens is reached: 5000 of 4500 tokens", outcome.message)
        self.assert_warned(server, "tokens")

    def test_max_requests_counts_ask_model_and_goes_on_with_resume(self):
        server = self.server(*[{"content": "4"}] * 3)
        once = self.sh("test -e begun || { touch begun; sleep 60; }")
        job = self.job(*[self.step("ask_model", prompt="2+2?")] * 2, once, self.step("ask_model", prompt="2+2?"),
                       inference={"allowed_models": ["m"], "max_requests": 2})
        env = {"OLLAMA_BASE_URL": server.url}
        self.run_and_signal(job, signal.SIGKILL, (self.workspace / "begun").exists, "the command", env=env)
        requests = len(server.requests)
        outcome = self.run_job(job, "--resume", env=env)
        self.assertEqual((outcome.code, len(server.requests)), ("constraint_violation", requests), outcome.result)
        self.assertEqual(outcome.statuses, ["success", "success", "success", "failure"])
        self.assertEqual(outcome.result["inference"]["requests"], 2)

    def test_a_request_that_was_cancelled_or_timed_out_is_in_the_result(self):
        server = self.server({"content": "late", "fault": {"name": "silence", "seconds": 30}})
        env = {"OLLAMA_BASE_URL": server.url}
        outcome = self.run_and_signal(self.agent_job(), signal.SIGTERM, server.chats, "a request", env=env)
        used = outcome.result["inference"]
        self.assertEqual((outcome.exit, outcome.code, used["requests"]), (143, "cancelled", 1))
        self.assertGreater(used["prompt_tokens"], 500)
        server = self.server({"content": "word " * 200, "piece": 500, "fault": {"name": "pause", "seconds": 60}})
        used = self.run_agent(server, job=self.agent_job(max_runtime_seconds=3)).result["inference"]
        self.assertGreater(used["prompt_tokens"], 500)
        self.assertGreater(used["completion_tokens"], 50)

    def test_answer_schema_of_a_text_that_reads_as_json(self):
        job = self.job_with(answer_schema={"type": "string"})
        outcome, _ = self.run_replies(LIST, call("finish", answer="1.5"), job=job)
        self.assert_answer(outcome, '"1.5"')

    def test_answer_schema(self):
        names = {"type": "array", "items": {"type": "string"}}
        properties = {"count": {"type": "integer", "minimum": 1}, "names": names}
        job = self.job_with(answer_schema={
            "type": "object", "required": ["count"], "additionalProperties": False, "properties": properties})
        answer, misfit = {"count": 2, "names": ["a"]}, "^the answer does not fit the job's schema: .*"
        for form, given in itertools.product(FORMATS, (answer, json.dumps(answer))):
            answers = [call("finish", answer=one) for one in ("two", {"count": 0}, given)]
            outcome, server = self.run_replies(LIST, *answers, form=form, job=job)
            self.assert_end(outcome, 0)
            self.assertEqual(json.loads(outcome.answer), answer)
            self.assertRegex(self.told(server, 2), misfit + "expected an object")
            self.assertRegex(self.told(server, 3), misfit + "/count: expected")
            self.assertIn('"minimum":1', server.chats()[0]["messages"][1]["content"])
        answers = [call("finish", answer={"count": -number}) for number in range(9)]
        outcome, server = self.run_replies(LIST, *answers, job=job)
        self.assertEqual((outcome.code, len(server.chats())), ("agent_gave_up", 5))
        self.assertIn("no answer that fits inference.answer_schema", outcome.message)
        outcome, _ = self.run_replies(call("finish", answer="no disk", status="failed"), job=job)
        self.assertEqual((outcome.code, outcome.answer), ("agent_gave_up", "no disk"))


class History(AgentCase):
    """What the model said goes back to it as it said it: its names, its order of arguments, no defaults."""
    ARGUMENTS = {"path": "a", "append": False, "content": "line\n\"\u00e9\"", "mode": "0600"}

    def test_calls_go_back_to_the_model_as_it_wrote_them(self):
        for form in FORMATS:
            with self.subTest(form):
                outcome, server = self.run_replies(call("WriteFile", **self.ARGUMENTS), finish(), form=form)
                self.assert_end(outcome, 0)
                self.assertEqual(self.text("a"), 'line\n"\u00e9"')
                said = next(message for message in server.chats()[1]["messages"] if message["role"] == "assistant")
                function = said["tool_calls"][0]["function"]
                self.assertEqual(function["name"], "WriteFile")
                if form == "openai":
                    self.assertEqual(function["arguments"], json.dumps(self.ARGUMENTS))
                else:
                    self.assertEqual(list(function["arguments"].items()), list(self.ARGUMENTS.items()))


class Ending(AgentCase):
    def assert_todo(self, outcome, *items):
        todo = outcome.result["todo"]["items"]
        self.assertEqual([(item["status"], item["note"]) for item in todo], list(items))
        self.assertEqual(self.todo_items(), todo)

    def test_requirements_are_done_when_the_job_is_in_the_models_order(self):
        # But for one that the model dropped; and not if it gave up.
        context = {"requirements": ["one", "two", "three"]}
        moves = call("todo_update", id="3", position=1), call("todo_update", id="2", status="dropped")
        for status, first in (("done", "done"), ("failed", "pending")):
            outcome, server = self.run_replies(*moves, LIST, finish("x", status=status), context=context)
            todo = outcome.result["todo"]
            self.assertEqual([item["title"] for item in todo["items"]], ["three", "one", "two"])
            self.assert_todo(outcome, (first, None), (first, None), ("dropped", None))
            self.assertEqual(todo["done"], 2 if status == "done" else 0)
            self.assertEqual(tools_of(server.chats()[0])["todo_update"]["position"]["type"], "integer")

    def test_finish_with_evidence(self):
        done = finish("made it", ("a file is there", True, "step-1 wrote it"), ("2", True, "step-1"))
        outcome, _ = self.run_replies(writes("a", "hi"), done,
                                      context={"acceptance_criteria": ["a file is there", "it says hi"]})
        self.assert_end(outcome, 0)
        self.assertEqual(outcome.acceptance, [
            {"criterion": "a file is there", "met": True, "evidence": "step-1 wrote it", "verified_by": "model"},
            {"criterion": "it says hi", "met": True, "evidence": "step-1", "verified_by": "model"}])
        self.assert_todo(outcome, ("done", None), ("done", None))

    def test_done_beside_a_call_that_failed_does_not_count(self):
        # The model had not seen it: it wrote all at once.
        done = "finish", {"answer": "All is done.", "status": "done"}
        for failing in (("run_command", {"command": "exit 3"}), ("read_file", {}),
                        ("replace_in_file", {"path": "a", "old_text": "x", "new_text": "y"})):
            with self.subTest(failing[0]):
                at_once = calls(failing, ("run_command", {"command": "true"}), done)
                outcome, server = self.run_replies(at_once, finish("now"))
                self.assert_answer(outcome, "now")
                told = "^not finished: a call before this one, in the same reply, failed "
                self.assertRegex(self.told(server, 1), told + rf"\({failing[0]}\)")
        outcome, _ = self.run_replies(calls(("write_file", {"path": "a", "content": "x"}), done))
        self.assert_answer(outcome, "All is done.")

    def test_done_without_evidence_is_refused_three_times_and_then_the_end(self):
        ends = finish(), finish("done", ("c", True, "trust me")), finish("done", ("c", True, "step-9")), finish("it is")
        context = {"acceptance_criteria": ["c"]}
        outcome, server = self.run_replies(LIST, *ends, {"content": "never asked"}, context=context)
        self.assert_end(outcome, 1, "acceptance_unmet")
        self.assertEqual(len(server.chats()), 5)

    def test_the_third_answer_in_prose_in_a_row_ends_the_job(self):
        said = "Next I write the file.", "Now I write it.", "It is all done.", "never asked"
        prose = [{"content": words} for words in said]
        no_calls = {"m": {"capabilities": ["completion"]}}  # no reply of it is called unreadable
        for before, options in (([], {}), ([], {"form": "openai"}), ([LIST], {}),
                                ([], {"context": {"acceptance_criteria": ["c"]}}), ([], {"models": no_calls})):
            outcome, server = self.run_replies(*before, *prose, **options)
            self.assert_end(outcome, 1, "agent_gave_up")
            self.assertEqual((outcome.answer, len(server.chats())), ("It is all done.", len(before) + 3))
            self.assertRegex(self.told(server, -1), '^Every reply must call a tool until you call finish.*{"answer": ')
        self.assertIn('{"tool": "finish", "arguments": {"answer"', self.told(server, -1))

    def test_finish_before_any_tool_is_asked_once_and_counts_the_second_time(self):
        for form in FORMATS:
            replies = call("todo_add", title="answer"), finish("4"), finish("It is 4."), {"content": "never asked"}
            outcome, server = self.run_replies(*replies, form=form)
            self.assert_answer(outcome, "It is 4.")
            told = "^No tool was called yet. If the job needs none, call finish once more"
            self.assertRegex(self.told(server, 2), told)
        outcome, _ = self.run_replies(finish(), call("run_command", shell="exit 3"), finish("It cannot be run."))
        self.assertEqual(outcome.answer, "It cannot be run.")
        outcome, server = self.run_replies(call("finish", answer="there is no disk", status="failed"))
        self.assertEqual((outcome.exit, outcome.code, len(server.chats())), (1, "agent_gave_up", 1))

    def test_a_criterion_that_is_not_met_ends_at_once(self):
        # The first `finish` is refused, for it says nothing of a.
        turns = LIST, finish("b", ("b", True, "step-1")), finish("could not", ("a", True, "step-1"), ("b", False, ""))
        criteria = {"acceptance_criteria": ["a", "b"]}
        outcome, _ = self.run_replies(*turns, {"content": "never asked"}, context=criteria)
        self.assertEqual((outcome.code, outcome.answer), ("acceptance_unmet", "could not"))
        self.assertEqual([one["met"] for one in outcome.acceptance], [True, False])
        self.assert_todo(outcome, ("done", None), ("pending", None))


class InTheLog(AgentCase):
    def test_the_answer_stands_before_the_last_line_and_the_counts_are_those_of_the_report(self):
        # Checks are steps too, in both.
        answer = "roman.c is fixed.\n\033[2Jresult: elsewhere"
        context = {"acceptance_criteria": [{"criterion": "there", "check": {"shell": "test -e a"}}]}
        turns = call("run_command", argv=["false"]), writes("a", ""), finish(answer)
        outcome = self.run_agent(self.server(*turns), "--log-format", "text", context=context)
        lines = outcome.stderr.decode().splitlines()
        at = lines.index("    roman.c is fixed.")  # notes may stand between it and the last line
        self.assertRegex(lines[at - 1], r"^success in \d.*, 3 steps: 2 succeeded, 1 failed$")
        self.assertEqual([lines[at + 1], lines[-1]], ["    \\x1b[2Jresult: elsewhere", f"result: {self.result_path}"])
        self.assertIn("3 steps: 2 succeeded, 1 failed", sba.run("--report", str(self.result_path)).stdout.decode())
        self.assertIn("job job-1: steps chosen by a model, at most 1 min 00 s", lines)


class ResumeAndReplay(AgentCase):
    def test_a_replay_needs_no_model_and_gives_the_same_or_says_what_differs(self):
        write, read = writes("a", "one"), call("run_command", shell="cat a")
        outcome, _ = self.run_replies(write, read, finish())
        self.assert_end(outcome, 0)
        recording = str(self.recording())
        self.put("a", "it was there")
        again = self.assert_end(self.run_job(self.agent_job(), "--replay", recording), 1, "internal_error")
        self.assertRegex(again.message, r"differs from the recording of version \S+: exchange 2, message 1 \(tool\)")
        (self.workspace / "a").unlink()
        again = self.assert_end(self.run_job(self.agent_job(), "--replay", recording), 0)
        self.assertEqual(sba.timeless(again.result), sba.timeless(outcome.result))
        again = self.run_job(self.agent_job(persona={"title": "another"}), "--replay", recording)
        self.assert_end(again, 2, "schema_validation", "another job")

    MET = finish("went on", ("c", True, "step-1"))

    def resumed_after(self, *replies, then=(MET,), **fields):
        job = self.agent_job(context={"acceptance_criteria": ["c"]}, **fields)
        (self.workspace / "a").unlink(missing_ok=True)
        first, _ = self.run_replies(*replies, job=job)
        self.assertEqual(first.status, "failure", first.result)
        second = self.server(*then)
        outcome = self.assert_end(self.run_agent(second, "--resume", job=job), 0)
        self.assertEqual(outcome.steps[:len(first.steps)], first.steps)
        self.assertEqual(outcome.result["todo"]["done"], 1)
        messages = second.chats()[0]["messages"]
        self.assertIn(f"[The job ended here ({first.result['failure_code']}: ", json.dumps(messages[-1]))
        answers = outcome.events("model.response")
        self.assertEqual(len(answers), len(second.chats()), "the earlier replies are in the earlier log")
        calls = sum(len(message.get("tool_calls") or ()) for message in messages)
        self.assertEqual(calls, sum(message["role"] == "tool" for message in messages), "each call has its answer")
        again = self.run_agent(self.server(), "--resume", job=job)
        self.assertEqual((again.exit, again.result_bytes), (0, outcome.result_bytes))
        recording = self.recording()
        (self.workspace / "a").unlink(missing_ok=True)
        self.assert_answer(self.run_job(job, "--replay", str(recording)), "went on")
        return outcome

    def test_a_job_that_an_agent_ended_goes_on(self):
        write, failed = writes("a", "x"), {"answer": "I cannot", "status": "failed"}
        self.resumed_after(write, call("finish", **failed))
        self.resumed_after(write, finish("done", ("c", False, "step-1")))
        self.resumed_after(write, *[finish()] * 4)
        self.resumed_after(calls(("write_file", {"path": "a", "content": "x"}), ("finish", failed), ("list_tree", {})))

    def test_its_counters_begin_anew(self):
        same, empty = LIST, {"content": ""}
        outcome = self.resumed_after(*[same] * 4, then=(same, same, same, self.MET))
        self.assertEqual(len(outcome.steps), 7)
        self.resumed_after(same, *[finish()] * 4, then=(*[finish()] * 3, self.MET))
        self.resumed_after(same, *[empty] * 3, then=(empty, empty, self.MET))

    def test_a_killed_run_goes_on_where_it_was(self):
        sleeping = call("run_command", shell="echo said so far; echo begun > b; sleep 60")
        env = {"OLLAMA_BASE_URL": self.server(writes("a", "one"), sleeping).url}

        def said():
            return self.result_path.exists() and "said so far\\n" in self.result_path.read_text()

        interrupted = self.run_and_signal(self.agent_job(), signal.SIGKILL, said, "what the command says", env=env)
        self.assertEqual(interrupted.code, "interrupted")
        second = self.server(finish("went on"))
        outcome = self.assert_answer(self.run_agent(second, "--resume"), "went on")
        self.assertEqual([(step["type"], step["status"]) for step in outcome.steps],
                         [("write_file", "success"), ("run_command", "failure")])
        self.assertEqual(outcome.steps[1]["error_code"], "interrupted")
        asked, = second.chats()
        self.assertIn("it may have done part or all of its work", json.dumps(asked))
        self.assertIn("said so far", json.dumps(asked["messages"][-1]), "the model is told what the step had said")
        self.assertEqual(outcome.steps[1]["output"], "said so far\n")

    @sba.wants("strace")
    def test_a_model_is_told_that_a_patch_was_undone(self):
        self.put("a", "1\n"), self.put("b", "1\n")
        diff = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-1\n+2\n" for name in "ab")
        first = self.server(call("apply_unified_diff", diff=diff))
        self.run_agent(first, wrapper=sba.injecting("linkat", "signal=SIGKILL:when=2"))
        self.assertEqual([self.text(name) for name in "ab"], ["2\n", "1\n"])
        second = self.server(finish("went on"))
        self.assert_end(self.run_agent(second, "--resume"), 0)
        self.assertEqual({path.name: path.read_text() for path in self.workspace.iterdir()}, {"a": "1\n", "b": "1\n"})
        self.assertIn("the files that it was changing are as they were before", json.dumps(second.chats()[0]))


sba.main(__name__)
