# SPDX-License-Identifier: Apache-2.0
"""Agent jobs with what small local models and their servers do: they go round in circles, repeat one word for ever, and have small
windows."""
import json

import sba
from test_agent import AgentCase, FORMATS, call


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


if __name__ == "__main__":
    sba.main()
