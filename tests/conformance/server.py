# SPDX-License-Identifier: Apache-2.0
"""server.py TRANSPORT [PORT]: an MCP server with the package that is installed: fastmcp, or the Python SDK of any major version."""
import ctypes
import sys

import anyio

try:
    from fastmcp import Context, FastMCP as Server
    HTTP = "http"
except ImportError:
    HTTP = "streamable-http"
    try:
        from mcp.server.mcpserver import Context, MCPServer as Server
    except ImportError:
        from mcp.server.fastmcp import Context, FastMCP as Server

transport, port = sys.argv[1], int((sys.argv[2:] or [0])[0])
in_constructor = HTTP != "http" and Server.__name__ == "FastMCP"  # SDK 1
server = Server("server", instructions="Call echo.", **({"port": port} if in_constructor else {}))


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
    """Asks the client, which cannot answer, and says what came of it."""
    try:
        return "given " + str(await ctx.session.list_roots())
    except Exception as problem:
        return f"refused: {problem}"


if transport == "stdio":
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: SIGKILL, for not every SDK ends when its bridge has
    server.run("stdio")
else:
    server.run(HTTP, **({} if in_constructor else {"port": port}))
