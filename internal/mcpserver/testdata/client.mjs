// Uses the server of an application with an official client for Node; see connect.mjs.
import { deepStrictEqual } from "node:assert";
import { connect } from "./connect.mjs";

let questions = 0;
async function answer(request) {
  questions++;
  const approval = "approve" in request.params.requestedSchema.properties;
  return { action: "accept", content: approval ? { approve: true } : { pay: true, note: "fine" } };
}

const { client, config } = await connect(answer);
const notes = [];
const call = (name, args) => {
  const options = { onprogress: (p) => notes.push(p.message) };
  return config.package === "sdk" ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options);
};

const tools = (await client.listTools()).tools.map((t) => t.name);
deepStrictEqual(tools, ["complaint", "letter", "pay_back", "photo", "split", "talk"]);

let r = await call("talk", { message: "Hello" });
const text = r.content[0].text;
deepStrictEqual(r.structuredContent.answer, text);
// A notification that arrives together with the result is lost in this client.
deepStrictEqual(text.startsWith(notes.filter((n) => !n.startsWith("row ")).join("")), true);
const session = r.structuredContent.session;
r = await call("talk", { message: "Again", session });
deepStrictEqual(r.content[0].text.slice(0, 28), "[mock] I received 3 messages");

r = await call("split", { lines: [{ sku: "a", quantity: 1 }] });
deepStrictEqual(r.structuredContent, { rows: [{ line: { sku: "a", quantity: 1 } }] });
r = await call("photo", { picture: "iVBORw0KGgo=" });
deepStrictEqual(r.content.map((c) => c.type), ["text", "image"]);
r = await call("letter", { order: 1, tone: "break" });
deepStrictEqual([r.isError, r.content[0].text], [true, "step write: model clerk: [mock] the model is broken"]);

r = await call("complaint", { order: 5 });
deepStrictEqual(r.structuredContent, { order: 5, pay: true, note: "fine" });
r = await call("talk", { message: "Refund order 8812" });
deepStrictEqual([r.content[0].text, questions], ["The refund was handled.", 2]);

const prompt = await client.getPrompt({ name: "pay_back", arguments: { order: "7" } });
deepStrictEqual(prompt.messages[0].content.text, "R    7");
deepStrictEqual((await client.listResources()).resources.length, 2);
const resource = await client.readResource({ uri: "qtype://memory/desk/" + session });
deepStrictEqual(JSON.parse(resource.contents[0].text).history.length, 4);
await client.close();
console.log("ok");
