"""An MCP server made with the official SDK for Python, for servers_test.go.

Its argument is {"http": true for HTTP, else standard input}.
"""

import json
import socket
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel

config = json.loads(sys.argv[1])
server = MCPServer("python")


class Answer(BaseModel):
    size: str


def old() -> str:
    return "old"


def older(word: str) -> str:
    return word


server.add_tool(old, name="old", description="Will change")


@server.tool()
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool()
async def change(ctx: Context) -> str:
    server.remove_tool("old")
    server.add_tool(older, name="olds", description="Has changed")
    await ctx.notify_tools_changed()  # for clients without a session
    await ctx.session.send_tool_list_changed()
    return "changed"


@server.tool()
async def think(ctx: Context) -> str:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="why"))
    result = await ctx.session.create_message(messages=[message], max_tokens=50)
    return result.content.text


@server.tool()
async def ask(ctx: Context) -> str:
    result = await ctx.elicit("Which size?", Answer)
    return result.action + " " + (result.data.size if result.action == "accept" else "")


@server.resource("config://shop", name="config", description="Settings")
def shop() -> str:
    return "open"


@server.resource("page://book/{name}", name="page")
def page(name: str) -> str:
    return "page " + name


@server.prompt(description="Reviews")
def review(code: str) -> str:
    return "Review " + code


if config.get("http"):
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print("listening", listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run([listener])
else:
    server.run("stdio")
