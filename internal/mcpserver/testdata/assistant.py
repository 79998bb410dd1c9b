"""Calls every tool of the server for assistants with the official client for Python,
which checks each result with the schema of the tool.

The argument is a JSON object: mode (legacy or auto), calls, and url or command with args.
"""
import asyncio
import json
import sys

from mcp import StdioServerParameters
from mcp.client import Client


async def main(config):
    server = config.get("url") or StdioServerParameters(command=config["command"], args=config["args"])
    async with Client(server, mode=config["mode"]) as client:
        names = {t.name for t in (await client.list_tools()).tools}
        if names != set(config["calls"]):
            sys.exit(f"the tools are {names}")
        for name, arguments in config["calls"].items():
            r = await client.call_tool(name, arguments)
            if r.is_error or not r.content or r.structured_content is None:
                sys.exit(f"{name}: {r}")
    print("ok")


asyncio.run(main(json.loads(sys.argv[1])))
