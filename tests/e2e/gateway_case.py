# SPDX-License-Identifier: Apache-2.0
"""What tests of a gateway's tools share."""
import json

import sba
from agent_case import AgentCase, finish
from servers import mcp, model


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
        return self.run_job(self.job(*steps, **fields), env=self.names(gateway) if gateway else {})

    @staticmethod
    def called(gateway):
        plain = [(m["tool_name"], m["arguments"]) for _, _, _, m in gateway.requests if m and m.get("tool_name")]
        return plain + [(m["params"]["name"], m["params"]["arguments"]) for m in gateway.messages("tools/call")]

    def offered(self, model):
        """The tools of the first request by name, in order."""
        functions = [one["function"] for one in model.chats()[0]["tools"]]
        by_name = {one["name"]: one for one in functions}
        self.assertEqual(len(by_name), len(functions), "a name is there twice")
        return by_name


def step(tool_name, **arguments):
    return sba.SandboxCase.step("call_tool", tool=tool_name, arguments=arguments)
