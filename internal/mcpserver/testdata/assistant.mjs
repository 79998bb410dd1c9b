// Calls every tool of the server for assistants with an official client for Node, which
// checks each result with the schema of the tool. The argument is that of client.mjs,
// with calls.
import { deepStrictEqual, ok } from "node:assert";
import { connect } from "./connect.mjs";

const { client, config } = await connect();
const names = (await client.listTools()).tools.map((t) => t.name);
deepStrictEqual(names.sort(), Object.keys(config.calls).sort());
for (const [name, args] of Object.entries(config.calls)) {
  const r = await client.callTool({ name, arguments: args });
  ok(!r.isError && r.content.length > 0 && r.structuredContent, name + ": " + JSON.stringify(r));
}
await client.close();
console.log("ok");
