// Drives flows with the official client of A2A. Arguments: the address of a server, that of
// a server with authentication, and a key.
// NODE_PATH is a node_modules folder with @a2a-js/sdk.
const assert = require("node:assert/strict");
const {Role, TaskState} = require("@a2a-js/sdk");
const {ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory} = require("@a2a-js/sdk/client");
const errors = require("@a2a-js/sdk/errors");

const [base, secured, key] = process.argv.slice(2);
const {randomUUID} = require("node:crypto");
const text = value => ({content: {$case: "text", value}, metadata: undefined, filename: "", mediaType: ""});
const data = value => ({content: {$case: "data", value}, metadata: undefined, filename: "", mediaType: "application/json"});
const raw = (value, mediaType) => ({content: {$case: "raw", value}, metadata: undefined, filename: "f", mediaType});
const message = (parts, more = {}) => ({tenant: "", configuration: undefined, metadata: undefined, message: {
  messageId: randomUUID(), contextId: "", taskId: "", role: Role.ROLE_USER, parts: [].concat(parts), metadata: undefined, extensions: [], referenceTaskIds: [], ...more}});
const skill = id => ({metadata: {skill: id}});
const textOf = parts => parts.filter(p => p.content.$case === "text").map(p => p.content.value).join("");
const artifact = (task, id) => task.artifacts.find(a => a.artifactId === id);
const answer = task => textOf(artifact(task, "answer").parts);
const outputs = task => artifact(task, "outputs").parts[0].content.value;

let client;

async function card() {
  const c = await client.getAgentCard();
  assert.equal(c.name, "agents");
  assert.deepEqual(c.skills.map(s => s.id), ["talk", "help", "counter", "forgetful", "greet", "ask", "pay_back", "find_receipt"]);
  assert.equal(c.capabilities.streaming, true);
  assert.ok(!c.capabilities.pushNotifications);
  assert.deepEqual(c.skills[0].examples, ["Think about it"]);
  assert.deepEqual(c.supportedInterfaces.map(i => [i.protocolBinding, i.protocolVersion]), [["JSONRPC", "1.0"], ["JSONRPC", "0.3"]]);
}

async function turns() {
  let contextId = "";
  for (let i = 1; i <= 8; i++) {
    const task = await client.sendMessage(message(text(`hello number ${i}`), {contextId}));
    assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
    assert.match(answer(task), new RegExp(`\\b${2 * i - 1} messages?\\b`), answer(task));
    contextId ||= task.contextId;
    assert.equal(task.contextId, contextId);
    assert.deepEqual(await client.getTask({tenant: "", id: task.id}), task);
  }
  const listed = await client.listTasks({tenant: "", contextId, status: 0, pageSize: 3, pageToken: "", statusTimestampAfter: undefined, includeArtifacts: true});
  assert.equal(listed.totalSize, 8);
  assert.equal(listed.tasks.length, 3);
  const next = await client.listTasks({tenant: "", contextId, status: 0, pageSize: 10, pageToken: listed.nextPageToken, statusTimestampAfter: undefined, includeArtifacts: false});
  assert.equal(next.tasks.length, 5);
  assert.equal(next.nextPageToken, "");
}

async function twice() {
  const request = message(text("only once"));
  const first = await client.sendMessage(request);
  const second = await client.sendMessage(request);
  assert.deepEqual(second, first);
}

// collect reads a stream and applies its events to a task.
async function collect(stream, each = () => {}) {
  let task, states = [], chunks = 0;
  for await (const event of stream) {
    const {$case, value} = event.payload;
    if ($case === "task") {
      assert.equal(task, undefined);
      task = value;
      states.push(value.status.state);
    } else if ($case === "statusUpdate") {
      assert.equal(value.taskId, task.id);
      assert.equal(value.contextId, task.contextId);
      task.status = value.status;
      states.push(value.status.state);
    } else {
      assert.equal($case, "artifactUpdate");
      chunks++;
      const old = artifact(task, value.artifact.artifactId);
      if (value.append) old.parts.push(...value.artifact.parts);
      else task.artifacts = task.artifacts.filter(a => a !== old).concat(value.artifact);
    }
    await each(event, task);
  }
  return {task, states, chunks};
}

async function streaming() {
  const {task, states, chunks} = await collect(client.sendMessageStream(message(text("think"))));
  assert.deepEqual(states, [TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED]);
  assert.equal(answer(task), "Thought about it.");
  assert.equal(chunks, 3);
  assert.equal(answer(await client.getTask({tenant: "", id: task.id})), "Thought about it.");
}

async function files() {
  const task = await client.sendMessage(message([text("what is this"), raw(Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), "image/png")]));
  assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
  assert.match(answer(task), /what is this/);
  const url = {content: {$case: "url", value: "http://127.0.0.1/x.png"}, metadata: undefined, filename: "", mediaType: "image/png"};
  await assert.rejects(client.sendMessage(message([text("fetch"), url])), is(-32005, /does not fetch/));
}

async function forms() {
  const task = await client.sendMessage(message(data({order: 77}), skill("find_receipt")));
  assert.deepEqual(outputs(task), {found: "Receipt of 77"});
  const again = await client.sendMessage(message(text('{"order": 78}'), {...skill("find_receipt")}));
  assert.deepEqual(outputs(again), {found: "Receipt of 78"});
  await assert.rejects(client.sendMessage(message(data({order: "x"}), skill("find_receipt"))), is(-32602, /order/));
  await assert.rejects(client.sendMessage(message(data({}), skill("find_receipt"))), is(-32602, /missing/));
  await assert.rejects(client.sendMessage(message(text("x"), skill("nothing"))), is(-32602, /nothing/));
  const greeting = await client.sendMessage(message([text("hi"), data({name: "Ada", language: "en"})], skill("greet")));
  assert.deepEqual(outputs(greeting), {greeting: "en: Ada"});
  const later = await client.sendMessage(message(text("hi again"), {contextId: greeting.contextId})); // the same skill and inputs
  assert.deepEqual(outputs(later), {greeting: "en: Ada"});
}

async function approvals() {
  for (const [parts, expected] of [[text("approve"), /R8812/], [data({approved: false, reason: "too expensive"}), /too expensive/], [text("No."), /rejected|not approved|declined/i]]) {
    const task = await client.sendMessage(message(text("refund order 8812"), skill("help")));
    assert.equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const question = task.status.message;
    assert.equal(question.taskId, task.id);
    assert.match(textOf(question.parts), /Approve the call of refund/);
    const [request] = question.parts[1].content.value.requests;
    assert.deepEqual(request.arguments, {order: 8812});
    await assert.rejects(client.sendMessage(message(text("maybe"), {taskId: task.id})), is(-32602, /approve/));
    const done = await client.sendMessage(message(parts, {taskId: task.id, contextId: task.contextId}));
    assert.equal(done.id, task.id);
    assert.equal(done.status.state, TaskState.TASK_STATE_COMPLETED);
    assert.match(answer(done), expected);
    await assert.rejects(client.sendMessage(message(parts, {taskId: task.id})), is(-32004));
  }
}

async function clientTools() {
  const {task, states} = await collect(client.sendMessageStream(message(text("confirm everything"), skill("help"))));
  assert.equal(states.at(-1), TaskState.TASK_STATE_INPUT_REQUIRED);
  const rest = await collect(client.sendMessageStream(message(data({result: {sure: true}}), {taskId: task.id})));
  assert.equal(rest.task.id, task.id);
  assert.equal(rest.states.at(-1), TaskState.TASK_STATE_COMPLETED);
  assert.match(answer(rest.task), /sure/);
  // a tool that a step calls
  const form = await client.sendMessage(message(data({order: 5}), skill("ask")));
  assert.equal(form.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
  const done = await client.sendMessage(message(text('{"sure": false}'), {taskId: form.id}));
  assert.deepEqual(outputs(done), {order: 5, sure: false});
}

async function cancellation() {
  let cancelled;
  const {states} = await collect(client.sendMessageStream(message(text("slowly"))), async (event, task) => {
    if (event.payload.$case === "artifactUpdate" && !cancelled) cancelled = await client.cancelTask({tenant: "", id: task.id, metadata: undefined});
  });
  assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
  assert.equal(states.at(-1), TaskState.TASK_STATE_CANCELED);
  await assert.rejects(client.cancelTask({tenant: "", id: cancelled.id, metadata: undefined}), is(-32002));
  const waiting = await client.sendMessage(message(text("refund order 1"), skill("help")));
  const ended = await client.cancelTask({tenant: "", id: waiting.id, metadata: undefined});
  assert.equal(ended.status.state, TaskState.TASK_STATE_CANCELED);
}

async function resubscription() {
  const stream = client.sendMessageStream(message(text("slowly")));
  let id;
  for await (const event of stream) { // leave in the middle
    if (event.payload.$case === "task") id = event.payload.value.id;
    if (event.payload.$case === "artifactUpdate") break;
  }
  const {task, states} = await collect(client.resubscribeTask({tenant: "", id}));
  assert.equal(answer(task), "one two three four five six seven eight nine ten");
  assert.equal(states.at(-1), TaskState.TASK_STATE_COMPLETED);
  await assert.rejects(async () => { for await (const _ of client.resubscribeTask({tenant: "", id})); }, is(-32004));
}

async function immediately() {
  const request = message(text("slowly"));
  request.configuration = {acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true};
  const task = await client.sendMessage(request);
  assert.equal(task.status.state, TaskState.TASK_STATE_WORKING);
  await client.cancelTask({tenant: "", id: task.id, metadata: undefined});
}

// is checks the code of an error of the protocol.
function is(code, pattern = /./) {
  return e => {
    const inStream = /\(Code: (-\d+)\)/.exec(e.message);
    const found = inStream ? Number(inStream[1]) : e.code;
    assert.ok(String(e.message).match(pattern), e.message);
    assert.equal(found ?? codes[e.constructor.name], code, `${e.constructor.name} ${e.code} ${e.message}`);
    return true;
  };
}
const codes = {JsonRpcTaskNotFoundError: -32001, JsonRpcTaskNotCancelableError: -32002, JsonRpcPushNotificationNotSupportedError: -32003,
  JsonRpcUnsupportedOperationError: -32004, JsonRpcContentTypeNotSupportedError: -32005, JsonRpcRequestMalformedError: -32602};

async function failures() {
  const task = await client.sendMessage(message(text("fail")));
  assert.equal(task.status.state, TaskState.TASK_STATE_FAILED);
  assert.match(textOf(task.status.message.parts), /out of order/);
  const {states} = await collect(client.sendMessageStream(message(text("fail"))));
  assert.equal(states.at(-1), TaskState.TASK_STATE_FAILED);
  await assert.rejects(client.getTask({tenant: "", id: "task_X"}), is(-32001));
  await assert.rejects(client.getTask({tenant: "", id: "task_00000000000000000000000000000000"}), is(-32001));
  await assert.rejects(client.cancelTask({tenant: "", id: "x", metadata: undefined}), is(-32001));
  const picky = message(text("hi"));
  picky.configuration = {acceptedOutputModes: ["video/mp4"], taskPushNotificationConfig: undefined, returnImmediately: false};
  await assert.rejects(client.sendMessage(picky), is(-32005));
  const push = {tenant: "", id: "1", taskId: task.id, url: "http://127.0.0.1/hook", token: "", authentication: undefined};
  await assert.rejects(async () => client.createTaskPushNotificationConfig(push), errors.PushNotificationNotSupportedError);
}

async function agentOfFlow() {
  const own = await factory().createFromUrl(`${base}/flows/help/`, ".well-known/agent-card.json");
  const c = await own.getAgentCard();
  assert.deepEqual([c.name, c.skills.length, new URL(c.supportedInterfaces[0].url).pathname], ["help", 1, "/flows/help/a2a"]);
  const task = await own.sendMessage(message(text("receipt of 3")));
  assert.match(answer(task), /Receipt of 3/);
  const other = await client.sendMessage(message(text("hi")));
  await assert.rejects(own.getTask({tenant: "", id: other.id}), is(-32001));
}

async function authentication() {
  await assert.rejects(factory().createFromUrl(secured), /401/);
  const fetchImpl = (url, init) => fetch(url, {...init, headers: {...init?.headers, Authorization: `Bearer ${key}`}});
  const own = await new ClientFactory({transports: [new JsonRpcTransportFactory({fetchImpl})], cardResolver: new DefaultAgentCardResolver({fetchImpl})}).createFromUrl(secured);
  const c = await own.getAgentCard();
  assert.equal(c.securitySchemes.bearer.scheme.$case, "httpAuthSecurityScheme");
  assert.deepEqual([c.securitySchemes.apiKey.scheme.value.name, c.securitySchemes.apiKey.scheme.value.location], ["X-API-Key", "header"]);
  assert.equal(c.securityRequirements.length, 2);
  assert.match(answer(await own.sendMessage(message(text("hello")))), /hello/);
}

// formerVersion calls the same flows with version 0.3.
async function formerVersion() {
  const rpc = async (method, params) => (await (await fetch(`${base}/a2a`, {method: "POST", headers: {"Content-Type": "application/json"},
    body: JSON.stringify({jsonrpc: "2.0", id: 1, method, params})})).json());
  const old = (parts, more = {}) => ({message: {kind: "message", messageId: randomUUID(), role: "user", parts, ...more}});
  const {result} = await rpc("message/send", old([{kind: "text", text: "hello"}]));
  assert.equal(result.kind, "task");
  assert.equal(result.status.state, "completed");
  assert.match(result.artifacts[0].parts[0].text, /hello/);
  assert.deepEqual((await rpc("tasks/get", {id: result.id})).result, result);
  const {result: waiting} = await rpc("message/send", old([{kind: "text", text: "refund order 9"}], {metadata: {skill: "help"}}));
  assert.equal(waiting.status.state, "input-required");
  const {result: done} = await rpc("message/send", old([{kind: "text", text: "approve"}], {taskId: waiting.id}));
  assert.equal(done.status.state, "completed");
  assert.equal((await rpc("tasks/get", {id: "x"})).error.code, -32001);
  const listed = await (await fetch(`${base}/.well-known/agent-card.json`)).json();
  assert.equal(listed.url, `${base}/a2a`);
  assert.equal(listed.protocolVersion.startsWith("0.3"), true);
  const former = {...listed, supportedInterfaces: undefined};
  const {parseLegacyAgentCard, LegacyJsonRpcTransport} = require("@a2a-js/sdk/compat/v0_3/client");
  parseLegacyAgentCard(former);
  const transport = new LegacyJsonRpcTransport({endpoint: `${base}/a2a`});
  const task = await transport.sendMessage(message(text("hello")));
  assert.match(answer(task), /hello/);
  const {states, task: streamed} = await collect(transport.sendMessageStream(message(text("think"))));
  assert.equal(answer(streamed), "Thought about it.");
  assert.equal(states.at(-1), TaskState.TASK_STATE_COMPLETED);
}

const factory = () => new ClientFactory();

(async () => {
  client = await factory().createFromUrl(base);
  for (const test of [card, turns, twice, streaming, files, forms, approvals, clientTools, cancellation, resubscription, immediately, failures, agentOfFlow, authentication, formerVersion]) {
    try {
      await test();
    } catch (e) {
      process.stderr.write(`FAILED ${test.name}: ${e.stack}\n`);
      process.exitCode = 1;
    }
  }
})();
