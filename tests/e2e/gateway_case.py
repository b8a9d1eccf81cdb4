# SPDX-License-Identifier: Apache-2.0
"""What tests of a gateway's tools share."""
import json
import pathlib
import subprocess
import unittest

import sba
from agent_case import AgentCase, finish
from servers import mcp, model

# What a model of a large context is offered besides the gateway's tools and finish.
OWN = ["run_command", "list_tree", "read_file", "replace_in_file", "search_files", "write_file", "todo_add",
       "todo_update", "read_output"]
DRIVER = str(pathlib.Path(__file__).with_name("gateway.lua"))


def echo(exchange):
    return mcp.text(json.dumps(exchange.message["params"]["arguments"], sort_keys=True))


def tool(function=echo, **fields):
    return fields, function


def says(words, **more):
    return tool(lambda _: mcp.text(words, **more))


class GatewayCase(AgentCase):
    def gateway(self, kind=mcp.Server, **options):
        return self.closing(kind(**options))

    @staticmethod
    def names(gateway):
        return {"SBA_MCP_GATEWAY_URL": gateway if isinstance(gateway, str) else gateway.url}

    def agent(self, gateway, *replies, job=None, more=(), **script):
        """Returns outcome and model."""
        server = self.server(*replies, finish("ok") if replies else model.ending(), **script)
        return self.run_agent(server, *more, job=job, env=self.names(gateway)), server

    def direct(self, gateway, *steps, **fields):
        return self.run_steps(*steps, **fields, env=self.names(gateway) if gateway else {})

    @staticmethod
    def called(gateway):
        plain = [(m["tool_name"], m["arguments"]) for _, _, _, m in gateway.requests if m and m.get("tool_name")]
        return plain + [(m["params"]["name"], m["params"]["arguments"]) for m in gateway.messages("tools/call")]

    def offered(self, model, number=0):
        """The tools of a request by name, in order."""
        functions = [one["function"] for one in model.chats()[number]["tools"]]
        by_name = {one["name"]: one for one in functions}
        self.assertEqual(len(by_name), len(functions), "a name is there twice")
        return by_name


def step(tool_name, **arguments):
    return sba.SandboxCase.step("call_tool", tool=tool_name, arguments=arguments)


class TalkingCase(unittest.TestCase):
    """Talks to a gateway by the runner's own client, without a job."""

    def server(self, kind=mcp.Server, **options):
        server = kind(**options)
        self.addCleanup(server.close)
        return server

    def echoing(self, function=echo, **options):
        """A server whose one tool is called echo."""
        return self.server(tools={"echo": tool(function)}, **options)

    def start(self, url, *calls, **options):
        fields = {"environment": {"SBA_MCP_GATEWAY_URL": url} if isinstance(url, str) else url, "job_id": "job-1",
                  "task_id": "task-1", "ext_net_allowed": False, **options}
        plan = [{"name": name, "arguments": arguments} for name, arguments in calls]
        return subprocess.Popen([sba.BINARY, "--lua", DRIVER, json.dumps(fields), json.dumps(plan)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def talk(self, url, *calls, **options):
        """Returns what connect and tools gave, and what each call gave."""
        process = self.start(url, *calls, **options)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(stderr, b"")
        lines = [json.loads(line) for line in stdout.splitlines()]
        return lines[0], lines[1:]

    def call(self, server, name="echo", arguments=None, **options):
        _, (said,) = self.talk(server.url, (name, arguments or {}), **options)
        return said
