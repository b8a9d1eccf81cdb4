# SPDX-License-Identifier: Apache-2.0
"""Agent jobs with what small local models and their servers do: they go round in circles, repeat one word for ever, and have small
windows."""
import json

import sba
from servers import tokens
from test_agent import AgentCase, FORMATS, call, calls, finish


class Circles(AgentCase):
    def assert_stuck(self, replies, requests, form="ollama"):
        server = self.server(*replies)
        outcome = self.run_agent(server, form=form)
        self.assertEqual(outcome.result["failure_code"], "agent_stuck", outcome.result)
        self.assertEqual(len(self.chats(server)), requests, outcome.result)
        return server

    def test_two_commands_that_take_turns(self):
        self.assert_stuck([call("run_command", shell="echo a"), call("run_command", shell="echo b; exit 1")] * 9, 8)

    def test_a_result_that_differs_in_ids_and_times_only(self):
        for shell in ("date +%s%N", "date -u '+%F %T.%N'", "mktemp -u", "echo pid $$", "cat /proc/sys/kernel/random/uuid"):
            with self.subTest(shell):
                self.assert_stuck([call("run_command", shell=shell)] * 9, 4)

    def test_a_todo_item_that_is_added_again_and_again(self):
        server = self.server(*[call("todo_add", title="Look around"), call("todo_add", title=" look around")] * 5)
        outcome = self.run_agent(server)
        self.assertEqual([item["title"] for item in outcome.result["todo"]["items"]], ["Look around"])
        self.assertIn("item 1: pending; it was in the list before", json.dumps(self.chats(server)[2]))
        self.assertEqual(outcome.result["failure_code"], "agent_stuck", outcome.result)

    def test_a_title_that_another_item_has(self):
        server = self.server(call("todo_add", title="a"), call("todo_add", title="b"), call("todo_update", id="2", title="A"), {"content": "ok"})
        outcome = self.run_agent(server)
        self.assertEqual([item["title"] for item in outcome.result["todo"]["items"]], ["a", "b"])
        self.assertIn("item 1 has that title", json.dumps(self.chats(server)[3]))

    def test_the_same_command_after_each_of_many_changes(self):
        replies = []
        for number in range(6):
            replies += [call("run_command", shell=f"echo {number} > a.txt"), call("run_command", shell="exit 3")]
        outcome = self.run_agent(self.server(*replies, {"content": "ok"}, {"content": "ok"}))
        self.assertEqual((outcome.exit, len(outcome.result["steps"])), (0, 12), outcome.result)

    def test_the_temperature_rises_before_the_job_ends(self):
        for form in FORMATS:
            server = self.assert_stuck([call("run_command", shell="exit 1")] * 9, 4, form)
            bodies = [body["options"] if form == "ollama" else body for body in self.chats(server)]
            self.assertEqual([body.get("temperature") for body in bodies], [None, None, 1.0, 1.2])

    def test_a_model_that_takes_no_temperature(self):
        refused = {"fault": {"name": "bad_request", "text": "Unsupported value: 'temperature' does not support 1.0 with this model."}}
        turn = call("run_command", shell="exit 1")
        server = self.server(turn, turn, refused, turn, turn)
        outcome = self.run_agent(server, form="openai")
        self.assertEqual(outcome.result["failure_code"], "agent_stuck", outcome.result)
        self.assertEqual(["temperature" in body for body in self.chats(server)], [False, False, True, False, False])


class SmallWindows(AgentCase):
    """A server that counts as a real one does, and refuses what is longer than its window."""
    WINDOW = 4096
    OUTPUTS = {
        "numbers": "seq 20000", "hexadecimal": "head -c 20000 /dev/urandom | od -An -tx1", "base64": "head -c 20000 /dev/urandom | base64",
        "hindi": "yes 'काम करो और फ़ाइल पढ़ो।' | head -n 900", "chinese": "yes '请读取文件并修复错误。' | head -n 900",
        "listing": "ls -la /usr/bin", "prose": "yes 'The quick brown fox jumps over the lazy dog.' | head -n 900",
        "one line": "head -c 60000 /dev/zero | tr '\\0' x",
    }

    def models(self, window=WINDOW, capabilities=("completion", "tools")):
        return {"m": {"capabilities": list(capabilities), "context_length": window, "max_model_len": window, "counts": True}}

    def assert_within(self, server, form, window):
        for body in self.chats(server):
            longest = body["options"]["num_predict"] if form == "ollama" else body["max_tokens"]
            self.assertLessEqual(tokens.of_request(body) + longest, window)
            self.assertGreaterEqual(longest, 256)

    def test_a_job_of_many_turns_whose_outputs_are_larger_than_the_window(self):
        long = "".join(f"line {number} of a long file\n" for number in range(150))
        for form in FORMATS:
            with self.subTest(form):
                replies = [call("run_command", shell=shell) for shell in self.OUTPUTS.values()]
                replies += [call("write_file", path=f"{form}.txt", content=long), call("run_command", shell=f"grep -c line {form}.txt"),
                            call("read_output", step="step-1", offset_bytes=50000), finish("all seen")]
                server = self.server(*replies, models=self.models())
                outcome = self.run_agent(server, form=form)
                self.assertEqual((outcome.exit, outcome.result.get("final_answer")), (0, "all seen"), outcome.result["failure_message"])
                self.assertEqual((server.refused, len(outcome.result["steps"])), (0, len(self.OUTPUTS) + 2))
                self.assert_within(server, form, self.WINDOW)

    def test_ten_results_in_one_reply(self):
        server = self.server(calls(*[("run_command", {"shell": f"seq {number} 20000"}) for number in range(10)]), finish("seen"),
                             models=self.models(8192))
        outcome = self.run_agent(server)
        self.assertEqual((outcome.exit, server.refused), (0, 0), outcome.result)

    def test_tools_are_charged_what_the_server_counted(self):
        """A template that takes 3,000 tokens more for the tools than they seem to cost."""
        outputs = [call("run_command", shell=f"seq {number} 3000") for number in range(6)]
        server = self.server(*outputs, finish("seen"), models={"m": {"capabilities": ["completion", "tools"], "context_length": 16384,
                                                                     "counts": True, "template": 3000}})
        outcome = self.run_agent(server)
        self.assertEqual((outcome.exit, server.refused), (0, 0), outcome.result)
        for body in self.chats(server)[1:]:
            self.assertLessEqual(tokens.of_request(body) + 3000 + body["options"]["num_predict"], 16384)

    def test_a_refusal_says_how_much_there_was(self):
        """The counted prompt of the refusal is learned from, so the second try fits."""
        job = self.agent_job(context={"task_context": "word " * 1000})
        server = self.server(*[call("run_command", shell=f"yes 'abc {number}' | head -c 9000") for number in range(4)], finish("seen"),
                             models={"m": {"max_model_len": 8192, "counts": True, "template": 1500}})
        outcome = self.run_agent(server, form="openai", job=job)
        self.assertEqual(outcome.exit, 0, outcome.result)
        self.assertLessEqual(server.refused, 1)

    def test_half_of_the_window_is_the_replys(self):
        for window, most in ((32768, 16384), (16384, 8192), (131072, 32768)):
            server = self.server(call("list_tree"), finish("ok"), models={"m": {"num_ctx": window, "context_length": window}})
            self.assertEqual(self.run_agent(server).exit, 0)
            self.assertEqual([body["options"]["num_predict"] for body in self.chats(server)], [most] * 2)

    def test_a_model_whose_replies_are_shorter_than_that(self):
        for text, bound in (("max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas you provided 16384.",
                             4096), ("max_tokens: 16384 > 5000, which is the maximum allowed number of output tokens for m", 5000)):
            server = self.server({"fault": {"name": "bad_request", "text": text}}, call("list_tree"), finish("ok"))
            self.assertEqual(self.run_agent(server, form="openai").exit, 0)
            self.assertEqual([body["max_tokens"] for body in self.chats(server)], [16384, bound, bound])

    def test_what_was_shortened_to_fit_is_replayed_all_the_same(self):
        server = self.server(*[call("run_command", shell=f"seq {number} 9000") for number in range(5)], finish("seen"), models=self.models())
        self.assertEqual(self.run_agent(server).exit, 0)
        recording = self.root / "recording"
        recording.write_bytes((self.job_directory / "journal.jsonl").read_bytes())
        recording.chmod(0o644)
        outcome = self.run_job(self.agent_job(), "--replay", str(recording))
        self.assertEqual(outcome.exit, 0, outcome.result)


if __name__ == "__main__":
    sba.main()
