// An MCP server made with the official SDK for Node, for servers_test.go. Its argument is
// {"modules": node_modules, "http": true for HTTP with sessions, else standard input}.
import http from "node:http";
import { randomUUID } from "node:crypto";
import path from "node:path";
import { createRequire } from "node:module";

const config = JSON.parse(process.argv[2]);
const require = createRequire(path.join(config.modules, "package.json"));
const { McpServer, ResourceTemplate } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { z } = require("zod");

const text = (t) => ({ content: [{ type: "text", text: t }] });

function make() {
  const s = new McpServer({ name: "node", version: "1" });
  s.registerTool("add", { description: "Adds", inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => text(String(a + b)));
  const old = s.registerTool("old", { description: "Will change" }, () => text("old"));
  s.registerTool("change", { description: "Changes the tools" }, () => {
    old.remove();
    s.registerTool("olds", { description: "Has changed", inputSchema: { word: z.string() } }, ({ word }) => text(word));
    return text("changed");
  });
  s.registerTool("think", { description: "Calls the model" }, async () => {
    const r = await s.server.createMessage({ messages: [{ role: "user", content: { type: "text", text: "why" } }], maxTokens: 50 });
    return text(r.content.text);
  });
  s.registerTool("ask", { description: "Asks the user" }, async () => {
    const r = await s.server.elicitInput({ message: "Which size?", requestedSchema: { type: "object", properties: { size: { type: "string" } }, required: ["size"] } });
    return text(r.action + " " + (r.content?.size ?? ""));
  });
  s.registerResource("config", "config://shop", { description: "Settings" }, (uri) => ({ contents: [{ uri: uri.href, text: "open" }] }));
  s.registerResource("page", new ResourceTemplate("page://book/{name}", { list: undefined }), {}, (uri, { name }) => ({ contents: [{ uri: uri.href, text: "page " + name }] }));
  s.registerPrompt("review", { description: "Reviews", argsSchema: { code: z.string() } }, ({ code }) => ({ messages: [{ role: "user", content: { type: "text", text: "Review " + code } }] }));
  return s;
}

if (!config.http) {
  await make().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const server = http.createServer(async (req, res) => {
    if (req.url === "/forget") { // as a restart does
      sessions.clear();
      res.end("ok");
      return;
    }
    const id = req.headers["mcp-session-id"];
    if (id && !sessions.has(id)) {
      res.writeHead(404, { "content-type": "application/json" });
      res.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } }));
      return;
    }
    if (id) {
      await sessions.get(id).handleRequest(req, res);
      return;
    }
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(), onsessioninitialized: (sid) => sessions.set(sid, transport) });
    await make().connect(transport);
    await transport.handleRequest(req, res);
  });
  server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
}
