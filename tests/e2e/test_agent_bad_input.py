# SPDX-License-Identifier: Apache-2.0
"""Agent jobs that get nonsense: from servers, from models, from files. Each has a clear error, or goes on, and a
complete result."""
import json
import resource

import sba
from agent_case import FORMATS, LIST, AgentCase, calls, finish, writes
from servers import model

MEMORY = 512 << 20  # bytes of address space that the runner must do with; sanitizers need more


def limited():
    if not sba.IS_DEV:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


class BadInputCase(AgentCase):
    def assert_complete(self, outcome, code=None):
        """A whole result with this failure code, one line that says why, and nothing raw of a bug in it."""
        sba.result_validator().validate(outcome.result)
        self.assertEqual(outcome.code, code, outcome.message)
        self.assertEqual(outcome.exit, {None: 0, "schema_validation": 2, "timeout": 124}.get(code, 1))
        self.assertEqual(outcome.status, "failure" if code else "success")
        if code:
            message = outcome.message
            self.assertNotRegex(message, r"[\x00-\x1f\x7f]|\.lua:|attempt to|traceback")
            self.assertLess(len(message), 2000)
        self.assertEqual(outcome.log[-1]["event"], "job.finished")


class Servers(BadInputCase):
    def test_whose_names_of_models_move_the_cursor(self):
        server = self.server(models={"\x1b[2Ja\nb": {}})
        message = self.run_agent(server).message
        self.assertIn(r"\x1b[2Ja b", message)
        self.assertFalse(set("\x1b\n") & set(message))

    def test_whose_numbers_are_none(self):
        # Negative and endless counts, and windows of nothing, are unknown: tokens are estimated then.
        for count in (-7, 0, 1 << 62, 1.5, "many"):
            reply = {**LIST, "prompt_tokens": count, "completion_tokens": count}
            models = {"m": {"context_length": count}}
            for form in FORMATS:
                with self.subTest(f"{form} {count}"):
                    outcome, _ = self.run_replies(reply, finish(), models=models, form=form)
                    self.assert_end(outcome, 0)
                    for name in ("prompt_tokens", "completion_tokens"):
                        self.assertIn(outcome.result["inference"][name], range(1, 10 ** 6))


class Models(BadInputCase):
    def test_whose_arguments_have_the_wrong_types(self):
        mistakes = {
            "read_file": ({"path": 1}, {"path": None}, {}, {"pth": "a", "nope": True}), "todo_add": ({"title": 7},),
            "run_command": ({"argv": ["ls", ["x"]]}, {"argv": [None]}, {"argv": []}), "todo_update": ({"id": {}},),
            "write_file": ({"path": "a", "content": ["a"]}, {"path": ["a"], "content": "x"}),
            "list_tree": ({"path": ".", "max_depth": "deep"},), "read_output": ({"step": 1},),
            "finish": ({"answer": ["x"], "acceptance": "all"},)}
        bad = [(name, arguments) for name, each in mistakes.items() for arguments in each]
        for form in FORMATS:
            outcome, server = self.run_replies(calls(*bad), model.ending(), form=form)
            self.assert_complete(outcome)
            self.assertEqual([step["type"] for step in outcome.steps], ["list_tree"])  # of the end
            told = self.tool_answers(server, 1)
            self.assertEqual(len(told), len(bad))
            for (name, arguments), answer in zip(bad, told):
                self.assertTrue(answer.startswith("failed"), (name, arguments, answer))

    def test_with_ten_thousand_parallel_calls(self):
        for form in FORMATS:
            writes = [("write_file", {"path": f"{form}{number}", "content": "x"}) for number in range(10000)]
            outcome, _ = self.run_replies(calls(*writes), finish(), form=form, preexec_fn=limited)
            sba.result_validator().validate(outcome.result)
            self.assertIn(outcome.code, (None, "inference_unavailable", "agent_stuck"), outcome.message)
            self.assertLessEqual(len(outcome.steps), 64)
            self.assertLessEqual(len(list(self.workspace.glob(form + "*"))), 64)

    def test_that_write_what_is_no_text(self):
        reply = calls(*(("write_file", {"path": path, "content": "x"}) for path in ("a\u0000b", "p" * 5000)),
                      ("run_command", {"argv": ["echo", "a\u0000b"]}))
        reply["content"] = "\u0000\u001b[2J\ud83d\ude00\u202e"
        outcome, _ = self.run_replies(reply, finish("ok\u0000\u001b[2J"))
        self.assert_complete(outcome)
        self.assertEqual(list(self.workspace.iterdir()), [])


class Files(BadInputCase):
    def replayed(self, recording, **fields):
        """Replays what is no recording. It is a mistake of the input, or an exchange that cannot be gone on from."""
        outcome = self.run_job(self.agent_job(**fields), "--replay", str(recording))
        self.assertIn(outcome.code, ("schema_validation", "internal_error"))
        self.assert_complete(outcome, outcome.code)
        return outcome.result

    def test_recording_that_is_none(self):
        replies = ({"tool_calls": 1}, {"content": 7}, {"tool_calls": [1, None]}, {"tool_calls": [{"name": 3}]},
                   {"tool_calls": [{"name": "read_file", "arguments": "x"}]}, {"content": None, "tool_calls": {}}, 3)
        recording = self.root / "recording"
        exchanges = [json.dumps({"event": "model.exchange", "reply": reply}).encode() + b"\n" for reply in replies]
        for content in (b"", b"{}\n", b"[1]\n", b"\xff\n", b'{"event":"model.exchange"}\n', b"{" * 1000, *exchanges):
            with self.subTest(content):
                recording.write_bytes(content)
                self.replayed(recording)
        self.assertEqual(self.replayed(self.root / "none")["failure_code"], "schema_validation")


sba.main(__name__)
