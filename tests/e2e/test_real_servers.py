# SPDX-License-Identifier: Apache-2.0
"""Jobs with llama.cpp's own server: its templates, its tokenizer, its window, its constrained replies, and its ends."""
import concurrent.futures
import json
import shutil

import sba
from agent_case import LIST, AgentCase, call, calls, runs
from servers import llama

LIMIT = 60  # seconds of a job that ends by itself
# How a job ends whose model writes what comes into its head: the runner understood the server, and says what was wrong.
HONEST = {None, "agent_gave_up", "agent_stuck", "timeout"}
TOOLS = {"apply_unified_diff", "list_tree", "read_file", "replace_in_file", "run_command", "search_files", "write_file",
         "todo_add", "todo_update", "read_output", "finish"}
VARIABLES = {"OPENAI_BASE_URL": "/v1", "OLLAMA_BASE_URL": "", "SBA_API_EGRESS_URL": "/v1/chat/completions"}


def said(exchange):
    """The content of a streamed reply, and why it ended."""
    content, reason = "", None
    for line in exchange["answer"].splitlines():
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:]).get("choices", []):
                content += choice["delta"].get("content") or ""
                reason = choice["finish_reason"] or reason
    return content, reason


class RealCase(AgentCase):
    @classmethod
    def setUpClass(cls):
        cls.here = llama.installed()

    def a_job(self, task="TASK-MARK: look around.", **fields):
        return self.agent_job(context={"task_context": task}, **{"max_runtime_seconds": LIMIT, **fields})

    def server(self, *options, weights=None):
        return self.closing(llama.Llama(weights or self.here.tiny, *options))

    def template(self, name):
        return ["--chat-template-file", self.here.templates / f"{name}.jinja"]


class Templates(RealCase):
    """Each chat template that llama.cpp ships (in a plain run, each sixth) renders all of a job."""

    def carry(self, path):
        case = self.fresh()
        case.put("notes.txt", "NOTE-MARK\n")
        script = [LIST, {"content": "I think about it."}, call("run_command", shell="echo $((40 + 2))-MARK; exit 3"),
                  call("read_file", path="notes.txt"), call("todo_add", title="look again"), call("no_such_tool"),
                  call("finish", answer="All seen.")]
        with (llama.Llama(self.here.tiny, "-c", "32768", "--chat-template-file", path) as server,
              llama.Judge(server, *script) as judge):
            outcome = case.run_job(self.a_job(), env={"OPENAI_BASE_URL": judge.url + "/v1"})
            taken = [exchange["body"] for exchange in judge.exchanges if exchange["taken"]]
            last = judge.prompt(taken[-1]) if taken else ""
            refused = [exchange["answer"] for exchange in judge.exchanges if not exchange["taken"]]
            marks = ("TASK-MARK", "42-MARK", "NOTE-MARK", "todo_update", "expected_count")
            return outcome.result, [mark for mark in marks if mark not in last], refused

    def test_every_template_carries_a_job(self):
        paths = sorted(self.here.templates.glob("*.jinja"))
        self.assertEqual(len(paths), 66)
        paths = paths if sba.LONG else paths[::6]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for path, (result, missing, refused) in zip(paths, pool.map(self.carry, paths)):
                with self.subTest(path.stem):
                    self.assertEqual((result["status"], result.get("final_answer")), ("success", "All seen."),
                                     (result["failure_message"], refused))
                    self.assertEqual(missing, [], "the last prompt lacks them")


class Replies(RealCase):
    """What a real server streams is understood, recorded and replayed."""

    def check(self, variable, *template, **changed):
        server = self.server("-c", "16384", *template)
        # The model may never end a call.
        recorder = self.closing(llama.Recorder(server, **{"max_tokens": 64, **changed}))
        outcome = self.run_job(self.a_job(), env={variable: recorder.url + VARIABLES[variable]})
        self.assertIn(outcome.code, HONEST, outcome.result)
        self.assertEqual({exchange["status"] for exchange in recorder.exchanges} - {500}, {200})
        if any(b'"usage"' in exchange["answer"] for exchange in recorder.exchanges):
            self.assertGreater(outcome.result["inference"]["prompt_tokens"], 1000)
            self.assertGreater(outcome.result["inference"]["completion_tokens"], 0)
        self.replay(outcome.result)
        return recorder

    def replay(self, first):
        """In a workspace as empty as the first was: the model may have written to that."""
        shutil.rmtree(self.workspace)
        self.folder(self.workspace)
        again = self.run_job(self.a_job(), "--replay", self.recording()).result
        for name in ("status", "failure_code", "failure_message", "final_answer"):
            self.assertEqual(again.get(name), first.get(name))
        self.assertEqual([step["type"] for step in again["steps"]], [step["type"] for step in first["steps"]])

    def test_each_address_of_the_server(self):
        for variable in VARIABLES:
            with self.subTest(variable):
                self.check(variable, *self.template("Qwen-Qwen3-0.6B"))

    def test_calls_as_text_are_bound(self):
        # What a random model writes are calls of tools that there are, with arguments they take.
        recorder = self.check("OPENAI_BASE_URL", max_tokens=1024)
        self.assertNotIn("tools", recorder.exchanges[0]["body"])
        whole = [content for content, reason in map(said, recorder.exchanges) if reason == "stop"]
        self.assertGreater(len(whole), 0)
        for content in whole:
            self.assertIn(json.loads(content)["tool"], TOOLS, content)
            self.assertIsInstance(json.loads(content)["arguments"], dict, content)


class Constrained(RealCase):
    def ask(self, weights):
        schema = {"type": "object", "required": ["colour", "count"], "additionalProperties": False, "properties": {
            "colour": {"type": "string", "enum": ["red", "green"]}, "count": {"type": "integer"},
            "why": {"type": "string", "maxLength": 40}}}
        server = self.server("-c", "4096", weights=weights)
        job = self.job(self.step("ask_model", prompt="Red or green? How many?", json_schema=schema),
                       inference={"allowed_models": ["m"]})
        outcome = self.run_job(job, env={"OPENAI_BASE_URL": server.url + "/v1"})
        self.assertEqual(outcome.status, "success", outcome.result)
        answer = outcome.steps[0]["result"]["json"]
        self.assertIn(answer["colour"], ("red", "green"))
        self.assertIsInstance(answer["count"], int)
        self.assertLessEqual(set(answer), {"colour", "count", "why"})

    def test_random_weights_keep_to_a_schema(self):
        self.ask(self.here.tiny)


class Ends(RealCase):
    """A job that ends leaves no server at work."""

    def start_endless(self, seconds):
        server = self.server("-c", "65536", "--ignore-eos", *self.template("Qwen-Qwen3-0.6B"))
        process = self.start(self.a_job(max_runtime_seconds=seconds), env={"OPENAI_BASE_URL": server.url + "/v1"})
        self.addCleanup(process.kill)
        sba.wait_for(server.is_busy, "the server to write")
        return server, process

    def test_cancel(self):
        server, process = self.start_endless(120)
        process.terminate()
        self.assert_end(self.outcome_of(process), 143, "cancelled")
        sba.wait_for(lambda: not server.is_busy(), "the server to stop")


class Window(RealCase):
    def test_more_than_the_window_is_shortened(self):
        # Ten files, each as large as the window, in windows of 4,096 and 8,192 tokens.
        for index in range(10):
            self.put(f"{index}.txt",
                     "".join(f"line {line} of file {index}: नमस्ते ┌─┐ {line * 7919:x}\n" for line in range(400)))
        for window in ("4096", "8192"):
            with self.subTest(window):
                script = [calls(*(("read_file", {"path": f"{index}.txt"}) for index in range(10))),
                          *(call("read_file", path=f"{index}.txt") for index in range(3)),
                          call("finish", answer="All read.")]
                judge = self.closing(llama.Judge(self.server("-c", window, *self.template("Qwen-Qwen3-0.6B")), *script))
                result = self.run_job(self.a_job(), env={"OPENAI_BASE_URL": judge.url + "/v1"}).result
                self.assertEqual((result["status"], result.get("final_answer")), ("success", "All read."),
                                 result["failure_message"])
                for exchange in judge.exchanges:
                    if exchange["taken"]:
                        self.assertLessEqual(judge.count(exchange["body"]), int(window))


class Cache(RealCase):
    """What a server has read it does not read again: what changes each turn stands at the end, and is not kept."""
    # Tokens of what stands at the end of each prompt: time left, the todo list and the mark for the reply; in a small
    # window nothing.
    ENDS = {"32768": 100, "16384": 2}

    def turns(self, window, *template):
        """Of each turn but the first: tokens of its prompt, of the one before, and those that were not read again."""
        script = [runs(f"echo {'word ' * (10 * number)}") for number in range(10)]
        script.insert(5, call("todo_add", title="look again"))
        judge = self.closing(llama.Judge(self.server("-c", window, *template), *script,
                                         call("finish", answer="All seen.")))
        result = self.run_job(self.a_job(), env={"OPENAI_BASE_URL": judge.url + "/v1"}).result
        self.assertEqual((result["status"], len(judge.exchanges)), ("success", 12), result["failure_message"])
        counts = [judge.count(exchange["body"]) for exchange in judge.exchanges]
        cached = [json.loads(exchange["answer"])["timings"]["cache_n"] for exchange in judge.exchanges]
        return list(zip(counts[1:], counts, cached[1:]))

    def test_only_what_is_new_is_read(self):
        for name, template in (("tools", self.template("Qwen-Qwen3-0.6B")), ("as text", [])):
            for window, ends in self.ENDS.items():
                with self.subTest(name, window=window):
                    turns = self.turns(window, *template)
                    print(name, window, turns)
                    for now, before, cached in turns:
                        self.assertGreaterEqual(cached, before - ends)
                        self.assertLess(now - cached, now - before + ends)


sba.main(__name__)
