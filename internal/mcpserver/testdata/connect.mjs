// Connects an official client for Node: package sdk is @modelcontextprotocol/sdk
// (version 1), client is @modelcontextprotocol/client (version 2).
//
// The argument of the program is a JSON object: modules (a node_modules folder), package,
// version (of the protocol), and url or command with args.
import { deepStrictEqual } from "node:assert";
import { createRequire } from "node:module";

const config = JSON.parse(process.argv[2]);
const require = createRequire(config.modules + "/main.js");
const load = (name) => import(require.resolve("@modelcontextprotocol/" + name));

const info = { name: "test", version: "1" };
export async function connect(answer) {
  const isSDK = config.package === "sdk";
  const { Client } = await load(isSDK ? "sdk/client/index.js" : "client");
  const { StreamableHTTPClientTransport } = await load(isSDK ? "sdk/client/streamableHttp.js" : "client");
  const { StdioClientTransport } = await load(isSDK ? "sdk/client/stdio.js" : "client/stdio");
  const client = new Client(info, { capabilities: answer ? { elicitation: { form: {} } } : {}, versionNegotiation: { mode: "auto" } });
  const method = isSDK ? (await load("sdk/types.js")).ElicitRequestSchema : "elicitation/create";
  if (answer) client.setRequestHandler(method, answer);
  const transport = config.url
    ? new StreamableHTTPClientTransport(new URL(config.url))
    : new StdioClientTransport({ command: config.command, args: config.args });
  await client.connect(transport);
  const version = isSDK ? "2025-11-25" : client.getNegotiatedProtocolVersion();
  deepStrictEqual(version, config.version);
  return { client, config };
}
