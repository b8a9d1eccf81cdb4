# SPDX-License-Identifier: Apache-2.0
"""What a model is told before its task: the sandbox's facts, the workspace's AGENTS.md. And artifacts as a place."""
import os
import shutil
import signal

import sba
from agent_case import LIST, AgentCase, call, calls, writes

OK = call("finish", answer="ok")
LOOK = call("run_command", shell="true")


class PromptCase(AgentCase):
    def prompt(self, *more, models=None, **options):
        server = self.server(LOOK, OK, models=models)
        self.outcome = self.run_agent(server, *more, **options)
        self.assertEqual(self.outcome.exit, 0, self.outcome.result)
        return "\n".join(message["content"] for message in server.chats()[0]["messages"])


class Facts(PromptCase):
    def test_facts_stand_once_before_the_task(self):
        self.put("src/main.c"), self.put("README.md"), self.put("sub/AGENTS.md", "x")
        server = self.server(LIST, OK)
        job = self.agent_job(context={"project_context": "PROJECT", "task_context": "TASK"})
        self.assertEqual(self.run_agent(server, job=job).exit, 0)
        for chat in server.chats():
            text = "".join(message["content"] for message in chat["messages"])
            places = [text.index(words) for words in ("## Baseline", "## How to work", "PROJECT", "## Facts",
                                                      "System: ", "Linux", "Shell: ",
                                                      "/bash" if shutil.which("bash") else "/bin/sh", "Tools in PATH: ",
                                                      "Network: not allowed", "Limits: 60 seconds",
                                                      "$CYNODE_ARTIFACTS_DIR", "sub/AGENTS.md",
                                                      "The workspace holds:\nREADME.md\nsrc/\n  main.c\n", "TASK")]
            self.assertEqual(places, sorted(places))
            self.assertEqual(text.count("The workspace holds:"), 1)

    def test_the_runners_own_files_are_none_of_them(self):
        self.job_directory = self.workspace
        self.result_path, self.journal_file = self.workspace / "result.json", self.workspace / "journal.jsonl"
        self.put("README.md")
        self.assertIn("The workspace holds:\nREADME.md\nartifacts/", self.prompt())

    def test_a_replay_elsewhere_and_a_resumed_run_are_told_the_same(self):
        self.put("before", "x"), self.put("AGENTS.md", "RULE 1\n")
        server = self.server(writes("after", "x"),
                             call("run_command", shell=f"echo begun > b; [ -e {self.root}/stop ] || sleep 60"))
        self.run_and_signal(self.agent_job(), signal.SIGKILL, (self.workspace / "b").exists, "the command to begin",
                            env={"OLLAMA_BASE_URL": server.url})
        (self.workspace / "AGENTS.md").write_text("RULE 2\n")
        second = self.server(OK)
        self.assertEqual(self.run_agent(second, "--resume").exit, 0)
        self.assertEqual(second.chats()[0]["messages"][0], server.chats()[0]["messages"][0])
        recording = self.recording()
        for path in self.workspace.iterdir():
            path.unlink()
        (self.root / "stop").touch()
        again = self.run_job(self.agent_job(), "--replay", str(recording))
        self.assertIn("exchange 3, message 1 (tool)", again.message)  # this run's command ends


class AgentsMd(PromptCase):
    def test_the_roots_is_part_of_the_project_of_every_prompt(self):
        self.put("AGENTS.md", "Use tabs.\n")
        context = {"project_context": "PROJECT", "task_context": "TASK"}
        text = self.prompt(job=self.agent_job(context=context))
        self.assertIn("## Project\n\nPROJECT\n\n### AGENTS.md of the workspace\n", text)
        self.assertLess(text.index("Use tabs.\n[end of AGENTS.md]"), text.index("TASK"))
        server = self.server({"content": "42"})
        job = self.job(self.step("ask_model", prompt="what?"), inference={"allowed_models": ["m"]})
        self.assertEqual(self.run_job(job, env={"OLLAMA_BASE_URL": server.url}).exit, 0)
        asked = server.chats()[0]["messages"][0]["content"]
        self.assertIn("Use tabs.\n[end of AGENTS.md]", asked)
        self.assertNotIn("## Facts", asked)

    def test_a_job_may_leave_it_out(self):
        self.put("AGENTS.md", "Use tabs.\n"), self.put("sub/AGENTS.md", "x")
        text = self.prompt(job=self.agent_job(context={"agents_md": False}))
        self.assert_lacks(text, "AGENTS.md of the workspace", "sub/AGENTS.md")
        self.assertIn("Use tabs.", self.prompt(job=self.agent_job(context={"agents_md": None})))
        refused = self.run_job(self.agent_job(context={"agents_md": "no"}))
        self.assertEqual(refused.exit, 2)
        self.assertIn("/context/agents_md", refused.message)

    def test_what_cannot_be_shown_is_said(self):
        (self.workspace / "AGENTS.md").symlink_to("/etc/passwd")
        text = self.prompt()
        self.assertRegex(text, "AGENTS.md is not shown here: .*path escapes workspace")
        self.assertNotIn("root:", text)
        self.assertIn("path escapes workspace", self.outcome.events("agents_md.left_out")[0]["error"])


class ArtifactsAsAPlace(PromptCase):
    def artifacts(self, outcome):
        return {one["path"]: one["size_bytes"] for one in outcome.result["artifacts"]}

    def test_file_steps_work_there(self):
        directory = self.job_directory / "artifacts"
        outcome = self.assert_end(self.run_job(self.job(
            self.write_file("$CYNODE_ARTIFACTS_DIR/deep/report.md", "one\n"),
            self.write_file(f"{directory}/deep/report.md", "two\n", append=True),
            self.step("replace_in_file", path="${CYNODE_ARTIFACTS_DIR}//deep/report.md", old_text="one",
                      new_text="three"),
            self.read_file("$CYNODE_ARTIFACTS_DIR/deep/../deep/report.md"),
            self.write_file("./$CYNODE_ARTIFACTS_DIR/x", "in the workspace"),
            self.write_file("$CYNODE_ARTIFACTS_DIRECTORY/x", "in the workspace"))), 0)
        self.assertEqual({one["result"]["path"] for one in outcome.steps[:3]}, {"$CYNODE_ARTIFACTS_DIR/deep/report.md"})
        self.assertEqual(outcome.steps[3]["result"]["content"], "three\ntwo\n")
        self.assertEqual(self.artifacts(outcome), {"deep/report.md": 10})
        self.assertEqual(sorted(path.name for path in self.workspace.iterdir()),
                         ["$CYNODE_ARTIFACTS_DIR", "$CYNODE_ARTIFACTS_DIRECTORY"])

    def test_nothing_leads_out_of_it(self):
        self.folder(self.root / "outside")
        (self.root / "outside" / "secret").write_text("secret")
        paths = ("$CYNODE_ARTIFACTS_DIR/../result.json", "$CYNODE_ARTIFACTS_DIR/link/secret",
                 "$CYNODE_ARTIFACTS_DIR/file", f"{self.job_directory}/artifacts/../x", f"{self.job_directory}/x",
                 "$CYNODE_ARTIFACTS_DIR//../../outside/secret")
        steps = [step for path in paths for step in (
            ("write_file", {"path": path, "content": "x"}), ("read_file", {"path": path}),
            ("replace_in_file", {"path": path, "old_text": "secret", "new_text": "x"}))]
        script = f"cd $CYNODE_ARTIFACTS_DIR; ln -s {self.root}/outside link; ln -s {self.root}/outside/secret file"
        outcome = self.run_agent(self.server(call("run_command", shell=script), calls(*steps), OK))
        self.assert_end(outcome, 0)
        for (kind, arguments), step in zip(steps, outcome.steps[1:], strict=True):
            with self.subTest(kind, path=arguments["path"]):
                self.assertEqual(step["error_code"], "path_escape")
                self.assertIn("path escapes workspace", step["error"])
        self.assertEqual((self.root / "outside" / "secret").read_text(), "secret")
        self.assertEqual(os.listdir(self.root / "outside"), ["secret"])

    def test_a_job_without_one_says_so(self):
        (self.job_directory / "artifacts").write_text("in its place")
        outcome = self.run_steps(self.write_file("$CYNODE_ARTIFACTS_DIR/a", "x"))
        self.assertEqual((outcome.exit, outcome.steps[0]["error_code"]), (1, "not_found"))
        self.assertIn("this job has no artifacts directory; give a path of the workspace", outcome.message)
        self.assertEqual(os.listdir(self.workspace), [])
        self.assertIn("no directory for them", self.prompt())


sba.main(__name__)
