# SPDX-License-Identifier: Apache-2.0
"""server.py PORT: an MCP server with the Python SDK of the major version that is installed."""
import sys

import anyio

try:
    from mcp.server.mcpserver import Context, MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP as Server

port = {"port": int(sys.argv[1])}
is_first = Server.__name__ == "FastMCP"  # SDK 1 has its port in the constructor
server = Server("server", instructions="Call echo.", **(port if is_first else {}))


@server.tool()
def echo(message: str) -> str:
    return message


@server.tool()
def rows() -> dict:
    return {"a": 1, "b": [1, 2]}


@server.tool()
async def slow(ctx: Context) -> str:
    for number in range(13):  # longer than a call that shows no progress may take
        await anyio.sleep(0.2)
        await ctx.report_progress(number, 13)
    return "slept"


@server.tool()
async def ask(ctx: Context) -> str:
    try:
        return "given " + str(await ctx.session.list_roots())
    except Exception as problem:
        return f"refused: {problem}"


@server.tool()
async def grow(ctx: Context) -> str:
    server.add_tool(lambda: "grown", name="grown")
    await ctx.session.send_tool_list_changed()
    return "grows"


server.run("streamable-http", **({} if is_first else port))
