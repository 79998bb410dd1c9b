"""Uses the server of an application with the official client for Python.

The argument is a JSON object: mode (legacy or auto), and url or command with args.
"""
import asyncio
import json
import sys

from mcp import StdioServerParameters
from mcp.client import Client
from mcp_types import ElicitResult


def equal(what, got, want):
    if got != want:
        sys.exit(f"{what}: got {got!r}, want {want!r}")


async def main(config):
    server = config.get("url") or StdioServerParameters(command=config["command"], args=config["args"])
    questions, notes = [], []

    async def answer(context, params):
        questions.append(params.message)
        if "approve" in params.requested_schema["properties"]:
            return ElicitResult(action="accept", content={"approve": True})
        return ElicitResult(action="accept", content={"pay": True, "note": "fine"})

    async def progress(progress, total, message):
        notes.append(message)

    async with Client(server, mode=config["mode"], elicitation_callback=answer) as client:
        equal("version", client.protocol_version, config["version"])
        tools = (await client.list_tools()).tools
        equal("tools", [t.name for t in tools], ["complaint", "letter", "pay_back", "photo", "split", "talk"])

        r = await client.call_tool("talk", {"message": "Hello"}, progress_callback=progress)
        equal("answer", r.structured_content["answer"], r.content[0].text)
        equal("progress", "".join(n for n in notes if not n.startswith("row ")), r.content[0].text)
        session = r.structured_content["session"]
        r = await client.call_tool("talk", {"message": "Again", "session": session})
        equal("second turn", r.content[0].text.startswith("[mock] I received 3 messages"), True)

        r = await client.call_tool("split", {"lines": [{"sku": "a", "quantity": 1}]})
        equal("rows", r.structured_content, {"rows": [{"line": {"sku": "a", "quantity": 1}}]})
        r = await client.call_tool("photo", {"picture": "iVBORw0KGgo="})
        equal("image", [c.type for c in r.content], ["text", "image"])
        r = await client.call_tool("letter", {"order": 1, "tone": "break"})
        equal("failed row", (r.is_error, r.content[0].text), (True, "step write: model clerk: [mock] the model is broken"))

        r = await client.call_tool("complaint", {"order": 5})
        equal("client tool", r.structured_content, {"order": 5, "pay": True, "note": "fine"})
        r = await client.call_tool("talk", {"message": "Refund order 8812"})
        equal("approval", r.content[0].text, "The refund was handled.")
        equal("questions", len(questions), 2)

        p = await client.get_prompt("pay_back", {"order": "7"})
        equal("prompt", p.messages[0].content.text, "R    7")
        uris = [str(x.uri) for x in (await client.list_resources()).resources]
        equal("resources", len(uris), 2)
        content = json.loads((await client.read_resource("qtype://memory/desk/" + session)).contents[0].text)
        equal("history", [m["message"]["role"] for m in content["history"]], ["user", "assistant"] * 2)
        templates = (await client.list_resource_templates()).resource_templates
        equal("templates", [t.uri_template for t in templates], ["qtype://memory/{memory}/{session}"])
    print("ok")


asyncio.run(main(json.loads(sys.argv[1])))
