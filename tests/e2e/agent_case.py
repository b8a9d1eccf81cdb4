# SPDX-License-Identifier: Apache-2.0
"""What tests of agent jobs share: a scripted model server, and the job that it works on."""
import json

import sba
from servers import model
from servers.model import call, calls  # noqa: F401  (for the tests)

LIST = call("list_tree")
FORMATS = {"ollama": ("OLLAMA_BASE_URL", ""), "openai": ("OPENAI_BASE_URL", "/v1")}


def runs(command, **more):
    return call("run_command", command=command, **more)


def writes(path, content):
    return call("write_file", path=path, content=content)


def as_json(tool, **arguments):
    return {"content": json.dumps({"thought": "", "tool": tool, "arguments": arguments})}


def finish(answer="done", *entries, **more):
    acceptance = [{"criterion": criterion, "met": met, "evidence": evidence} for criterion, met, evidence in entries]
    return call("finish", answer=answer, acceptance=acceptance, **more)


class AgentCase(sba.SandboxCase):
    def server(self, *replies, models=None, **script):
        return self.closing(model.Server({"models": models or {"m": {}}, "replies": list(replies), **script}))

    @staticmethod
    def agent_job(**fields):
        return sba.SandboxCase.job(execution_mode="agent_inference", inference={"allowed_models": ["m"]}, **fields)

    def run_agent(self, server, *more, form="ollama", job=None, context=None, env=None, **options):
        variable, suffix = FORMATS[form]
        environment = {variable: server.url + suffix, **(env or {})}
        job = job or self.agent_job(**({} if context is None else {"context": context}))
        return self.run_job(job, *more, env=environment, **options)

    def run_replies(self, *replies, models=None, formats=("ollama", "openai"), **options):
        server = self.server(*replies, models=models, formats=formats)
        return self.run_agent(server, **options), server

    def told(self, server, number):
        """The end of chat request number (from 0), without the time and the todo list."""
        return server.chats()[number]["messages"][-1]["content"].split("\n\nTime left:")[0]

    def tool_answers(self, server, number):
        return [message["content"] for message in server.chats()[number]["messages"] if message["role"] == "tool"]
