// Drives flows with the official client of AG-UI. Arguments: the address of the server.
// NODE_PATH is a node_modules folder with @ag-ui/client and @ag-ui/core.
const assert = require("node:assert/strict");
const {HttpAgent, buildResumeArray} = require("@ag-ui/client");
const {EventSchemas} = require("@ag-ui/core/schemas");

const base = process.argv[2];
console.error = () => {}; // the client writes the errors that the tests expect
const warnings = []; // the client warns of what the protocol does not define
console.warn = (...text) => warnings.push(text.join(" "));
let events = 0;
const types = new Set();
const known = require("@ag-ui/core").EventType;

// record checks each event of a response with the schemas of the protocol: nothing is
// unknown, and nothing is missing.
async function record(url, init) {
  const response = await fetch(url, init);
  if (!response.ok || !response.body) return response;
  const [mine, theirs] = response.body.tee();
  pending.push(check(mine));
  return new Response(theirs, {status: response.status, headers: response.headers});
}
const pending = [];
async function check(body) {
  let text = "";
  try {
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) text += chunk;
  } catch (e) {
    return; // aborted
  }
  for (const line of text.split("\n")) {
    if (!line.startsWith("data: ")) continue;
    const event = JSON.parse(line.slice(6));
    assert.deepEqual(JSON.parse(JSON.stringify(EventSchemas.parse(event))), event);
    types.add(event.type);
    events++;
  }
  const last = JSON.parse(text.trim().split("\n").pop().slice(6));
  assert.ok(["RUN_FINISHED", "RUN_ERROR"].includes(last.type), `the last event is ${last.type}`);
}

let ids = 0;
const id = () => `id_${++ids}`;
const agentOf = (flow, options = {}) => new HttpAgent({url: `${base}/flows/${flow}/agui`, threadId: `${flow}_${id()}`, fetch: record, ...options});
const say = (agent, content) => agent.addMessage({id: id(), role: "user", content});
const tools = [{name: "weather", description: "Weather of a city", parameters: {type: "object", properties: {city: {type: "string"}}}}];
const last = agent => agent.messages[agent.messages.length - 1];

// What the client removes from its messages, the model does not see either.
async function setMessages() {
  const agent = agentOf("talk");
  for (const text of ["one", "two", "three"]) {
    say(agent, text);
    await agent.runAgent();
  }
  const after = async (messages, count) => {
    agent.setMessages(messages);
    say(agent, "four");
    await agent.runAgent();
    assert.match(last(agent).content, new RegExp(`\\b${count} messages?\\b`));
  };
  await after(agent.messages.slice(0, 4), 5);
  await after(agent.messages.slice(0, 2), 3);
  await after([], 1);
}

async function turns() {
  const agent = agentOf("talk");
  for (let i = 1; i <= 12; i++) {
    say(agent, `hello number ${i}`);
    const {newMessages, result} = await agent.runAgent();
    assert.equal(newMessages.length, 1);
    assert.match(newMessages[0].content, new RegExp(`hello number ${i}`));
    assert.match(newMessages[0].content, new RegExp(`\\b${2 * i - 1} messages?\\b`), newMessages[0].content);
    assert.equal(result.answer.role, "assistant");
  }
}

async function reasoning() {
  const agent = agentOf("talk");
  say(agent, "think");
  const {newMessages} = await agent.runAgent();
  assert.deepEqual(newMessages.map(m => [m.role, m.content]), [["reasoning", "Let me see."], ["assistant", "Thought about it."]]);
  say(agent, "and now");
  await agent.runAgent(); // the reasoning of the client is not part of the conversation
  assert.match(last(agent).content, /and now/);
}

async function files() {
  const agent = agentOf("talk");
  say(agent, [{type: "text", text: "what is this"}, {type: "image", source: {type: "data", value: "iVBORw0KGgo=", mimeType: "image/png"}}]);
  await agent.runAgent();
  assert.match(last(agent).content, /what is this/);
  say(agent, [{type: "image", source: {type: "url", value: "http://127.0.0.1/x.png"}}]);
  await assert.rejects(agent.runAgent(), /HTTP 422.*does not fetch/);
}

async function frontendTools() {
  const agent = agentOf("help");
  for (let i = 0; i < 6; i++) {
    say(agent, `weather in City${i}`);
    let named;
    await agent.runAgent({tools}, {onRunFinishedEvent: p => { named = p.pendingToolCallIds; }});
    const call = last(agent).toolCalls[0];
    assert.deepEqual(named, [call.id]);
    assert.deepEqual(JSON.parse(call.function.arguments), {city: `City${i}`});
    agent.addMessage({id: id(), role: "tool", toolCallId: call.id, content: `${i} degrees`});
    const before = agent.messages.length;
    await agent.runAgent({tools});
    assert.equal(agent.messages.length, before + 1, "the result of the client's tool is not repeated");
    assert.equal(last(agent).role, "assistant");
    assert.match(last(agent).content, new RegExp(`${i} degrees`));
  }
}

async function parallelTools() {
  const agent = agentOf("help");
  say(agent, "weather in Paris and Rome");
  const answered = new Set();
  for (let rounds = 0; rounds < 5; rounds++) {
    let left;
    await agent.runAgent({tools}, {onRunFinishedEvent: p => { left = p.pendingToolCallIds; }});
    if (!left || left.length === 0) break;
    const calls = agent.messages.flatMap(m => m.toolCalls ?? []).filter(c => !answered.has(c.id));
    assert.ok(calls.length > 0);
    for (const call of calls) {
      answered.add(call.id);
      agent.addMessage({id: id(), role: "tool", toolCallId: call.id, content: JSON.stringify({sunny: call.function.arguments})});
    }
  }
  assert.equal(answered.size, 2);
  assert.equal(last(agent).role, "assistant");
  assert.ok(last(agent).content);
}

async function serverTool() {
  for (const flow of ["help", "forgetful"]) {
    const agent = agentOf(flow);
    say(agent, "receipt of 77");
    const {newMessages} = await agent.runAgent();
    assert.deepEqual(newMessages.map(m => m.role), ["assistant", "tool", "assistant"]);
    assert.match(newMessages[1].content, /Receipt of 77/);
    say(agent, "thanks");
    await agent.runAgent();
    // without a memory the conversation is that of the client
    assert.match(last(agent).content, /\b5 messages\b/, last(agent).content);
  }
}

async function approvals() {
  for (const [payload, status, expected] of [[{approved: true}, "resolved", /R8812/], [{approved: false, reason: "too expensive"}, "resolved", /too expensive/], [undefined, "cancelled", /cancelled/]]) {
    const agent = agentOf("help");
    say(agent, "refund order 8812");
    const custom = [];
    await agent.runAgent({}, {onCustomEvent: p => { custom.push(p.event); }});
    assert.equal(custom[0].name, "approval_request");
    assert.deepEqual(custom[0].value.arguments, {order: 8812});
    assert.equal(agent.pendingInterrupts.length, 1);
    const [interrupt] = agent.pendingInterrupts;
    assert.equal(interrupt.toolCallId, last(agent).toolCalls[0].id);
    await agent.runAgent({resume: buildResumeArray(agent.pendingInterrupts, {[interrupt.id]: {status, payload}})});
    assert.equal(agent.pendingInterrupts.length, 0);
    const result = agent.messages.find(m => m.role === "tool");
    assert.match(result.content, expected);
    assert.equal(last(agent).role, "assistant");
    say(agent, "thanks");
    await agent.runAgent();
    assert.match(last(agent).content, /\b5 messages\b/);
  }
}

// A caller who may not decide is not asked, and can go on.
async function roles() {
  const agent = agentOf("counter");
  say(agent, "refund order 8812");
  let failure;
  await agent.runAgent({}, {onRunErrorEvent: p => { failure = p.event; }}).catch(() => {});
  assert.equal(failure.code, "approval_required");
  assert.match(failure.message, /role:desk/);
  assert.equal(agent.pendingInterrupts.length, 0);
  say(agent, "never mind");
  await agent.runAgent();
  assert.match(last(agent).content, /never mind/);
}

async function both() {
  const agent = agentOf("help");
  say(agent, "confirm and refund 12");
  let rounds = 0;
  const answered = new Set();
  await agent.runAgent();
  for (;;) {
    const open = agent.messages.flatMap(m => m.toolCalls ?? []).filter(c => c.function.name === "confirm" && !answered.has(c.id));
    if (open.length === 0 && agent.pendingInterrupts.length === 0 && last(agent).role === "assistant" && last(agent).content) break;
    assert.ok(++rounds < 6);
    for (const call of open) {
      answered.add(call.id);
      agent.addMessage({id: id(), role: "tool", toolCallId: call.id, content: '{"sure": true}'});
    }
    const resume = agent.pendingInterrupts.map(i => ({interruptId: i.id, status: "resolved", payload: true}));
    await agent.runAgent(resume.length ? {resume} : {});
  }
  assert.ok(agent.messages.some(m => m.role === "tool" && /R12/.test(m.content)));
}

async function errors() {
  const agent = agentOf("talk");
  say(agent, "fail");
  let failure;
  await agent.runAgent({}, {onRunErrorEvent: p => { failure = p.event; }}).catch(() => {});
  assert.equal(failure.code, "http_500");
  assert.match(failure.message, /out of order/);
  say(agent, "still there?");
  await agent.runAgent();
  assert.match(last(agent).content, /still there\?/);

  const unknown = agentOf("nothing");
  say(unknown, "hello");
  await assert.rejects(unknown.runAgent(), /HTTP 404/);
  const form = agentOf("ask");
  say(form, "hello");
  await assert.rejects(form.runAgent(), /HTTP 404/);
  const late = agentOf("help");
  late.addMessage({id: id(), role: "tool", toolCallId: "x", content: "late"});
  await assert.rejects(late.runAgent(), /HTTP 409/);
}

async function abandoned() {
  const agent = agentOf("help");
  say(agent, "weather in Oslo");
  await agent.runAgent({tools});
  assert.equal(last(agent).toolCalls.length, 1);
  say(agent, "never mind");
  await agent.runAgent({tools});
  assert.match(last(agent).content, /never mind/);
}

async function abort() {
  const agent = agentOf("talk");
  say(agent, "slowly");
  await agent.runAgent({}, {onTextMessageContentEvent: () => { agent.abortRun(); }}).catch(() => {});
  for (let i = 0; ; i++) { // the run ends when the server sees that the client has gone
    const {runs} = await (await fetch(`${base}/runs?session=${agent.threadId}`)).json();
    if (runs.length === 1 && runs[0].status === "cancelled") break;
    assert.ok(i < 100, JSON.stringify(runs));
    await new Promise(r => setTimeout(r, 20));
  }
  say(agent, "hello again");
  await agent.runAgent();
  assert.match(last(agent).content, /hello again/);
}

async function state() {
  const agent = agentOf("greet", {initialState: {language: "en", mine: 1}});
  say(agent, "hi");
  const {result} = await agent.runAgent({forwardedProps: {name: "Ada"}});
  assert.equal(result.greeting, "en: Ada");
  assert.deepEqual(agent.state, {language: "en", mine: 1, greeting: "en: Ada"});
  say(agent, "hi again");
  await agent.runAgent(); // the inputs keep their first values
  assert.equal(agent.state.greeting, "en: Ada");
}

(async () => {
  for (const test of [turns, setMessages, reasoning, files, frontendTools, parallelTools, serverTool, approvals, roles, both, errors, abandoned, abort, state]) {
    try {
      await test();
      await Promise.all(pending.splice(0));
    } catch (e) {
      process.stderr.write(`FAILED ${test.name}: ${e.stack}\n`);
      process.exitCode = 1;
    }
  }
  const expected = ["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "REASONING_END",
    "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "STATE_SNAPSHOT", "CUSTOM"];
  for (const type of expected) assert.ok(types.has(type) && known[type], `no ${type}`);
  assert.deepEqual(warnings, []);
  console.log(`${events} events`);
})();
