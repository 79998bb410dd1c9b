// Drives the chat class of the AI SDK against a server, as a web page would:
//   node ai_client.mjs BASE
// It prints one JSON object with what the chats look like at the end of each scenario.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.QTYPE_AI_SDK + "/index.js");
const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } =
  await import(pathToFileURL(require.resolve('ai')).href);

class State {
  status = 'ready';
  error = undefined;
  messages = [];
  pushMessage = (m) => { this.messages = this.messages.concat(m); };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (i, m) => { this.messages = [...this.messages.slice(0, i), structuredClone(m), ...this.messages.slice(i + 1)]; };
  snapshot = (x) => structuredClone(x);
}

class Chat extends AbstractChat {
  constructor(init) { super({ ...init, state: new State() }); }
}

const base = process.argv[2];

function open(flow, id, { transport, ...more } = {}) {
  return new Chat({ id, transport: new DefaultChatTransport({ api: `${base}/flows/${flow}/stream`, ...transport }), ...more });
}

function seen(chat) {
  return {
    status: chat.status,
    error: chat.error?.message,
    messages: chat.messages.map((m) => ({
      role: m.role,
      parts: m.parts.map((p) => {
        if (p.type === 'text' || p.type === 'reasoning') return `${p.type}: ${p.text}`;
        if (p.type.startsWith('tool-')) return `${p.type} ${p.state} ${JSON.stringify(p.input)} ${JSON.stringify(p.output ?? p.errorText ?? null)}`;
        if (p.type === 'data-outputs') return `data-outputs ${Object.keys(p.data.outputs)}`;
        if (p.type === 'file') return `file ${p.mediaType} ${p.url.length}`;
        return p.type;
      }),
    })),
  };
}

async function until(condition, what, chat) {
  for (let i = 0; i < 400; i++) {
    if (condition()) return;
    await new Promise((r) => setTimeout(r, 25));
  }
  throw new Error(`timeout: ${what}: ${JSON.stringify(chat && seen(chat))}`);
}

const scenarios = {
  // Several turns: the memory of the server is the conversation.
  async turns() {
    const chat = open('talk', 'turns');
    for (const text of ['one', 'two', 'three']) await chat.sendMessage({ text });
    return seen(chat);
  },

  async reasoning() {
    const chat = open('talk', 'reasoning');
    await chat.sendMessage({ text: 'think' });
    await chat.sendMessage({ text: 'and again' });
    return seen(chat);
  },

  async tool() {
    const chat = open('talk', 'tool');
    await chat.sendMessage({ text: 'look up parcel' });
    await chat.sendMessage({ text: 'thanks' });
    return seen(chat);
  },

  // The client runs its tool and sends the result.
  async clientTool() {
    const chat = open('talk', 'client', {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall }) => { chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { city: 'Utrecht' } }); },
    });
    await chat.sendMessage({ text: 'where am I' });
    await until(() => chat.status === 'ready' && chat.messages.at(-1).parts.some((p) => p.type === 'text'), 'the answer after the tool', chat);
    await chat.sendMessage({ text: 'thanks' });
    return seen(chat);
  },

  async approval() {
    const chat = open('talk', 'approval', { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await chat.sendMessage({ text: 'refund order 7' });
    const part = chat.messages.at(-1).parts.find((p) => p.state === 'approval-requested');
    await chat.addToolApprovalResponse({ id: part.approval.id, approved: true });
    await until(() => chat.status === 'ready' && chat.messages.at(-1).parts.some((p) => p.type === 'text'), 'the answer after the approval');
    return seen(chat);
  },

  async rejection() {
    const chat = open('talk', 'rejection', { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await chat.sendMessage({ text: 'refund order 8' });
    const part = chat.messages.at(-1).parts.find((p) => p.state === 'approval-requested');
    await chat.addToolApprovalResponse({ id: part.approval.id, approved: false, reason: 'too late' });
    await until(() => chat.status === 'ready' && chat.messages.at(-1).parts.some((p) => p.type === 'text'), 'the answer after the rejection');
    return seen(chat);
  },

  async failure() {
    const chat = open('talk', 'failure');
    await chat.sendMessage({ text: 'fail' });
    const failed = seen(chat);
    chat.clearError();
    await chat.sendMessage({ text: 'again' });
    return { failed, after: seen(chat) };
  },

  async file() {
    const chat = open('talk', 'file');
    await chat.sendMessage({ text: 'see', files: [{ type: 'file', mediaType: 'image/png', filename: 'x.png', url: 'data:image/png;base64,iVBORw0KGgo=' }] });
    return seen(chat);
  },

  // Answers may have files.
  async picture() {
    const chat = open('repeat', 'picture');
    await chat.sendMessage({ text: 'see', files: [{ type: 'file', mediaType: 'image/png', filename: 'x.png', url: 'data:image/png;base64,iVBORw0KGgo=' }] });
    return seen(chat);
  },

  async regenerate() {
    const chat = open('talk', 'regenerate');
    await chat.sendMessage({ text: 'first' });
    await chat.sendMessage({ text: 'second' });
    await chat.regenerate();
    return seen(chat);
  },

  // An edit of an earlier message undoes its turn and those after it.
  async edit() {
    const chat = open('talk', 'edit');
    for (const text of ['first', 'second', 'third']) await chat.sendMessage({ text });
    await chat.sendMessage({ text: 'other', messageId: chat.messages[2].id });
    await chat.sendMessage({ text: 'more' });
    return seen(chat);
  },

  // What a page removes from its list, the model does not see either.
  async shorten() {
    const chat = open('talk', 'shorten');
    for (const text of ['first', 'second', 'third']) await chat.sendMessage({ text });
    chat.messages = chat.messages.slice(0, 2);
    await chat.sendMessage({ text: 'after the first' });
    const shortened = seen(chat);
    chat.messages = [];
    await chat.sendMessage({ text: 'after nothing' });
    return { shortened, cleared: seen(chat) };
  },

  // A failed message of the page has no turn to undo.
  async editAfterFailure() {
    const chat = open('talk', 'edit-failure');
    for (const text of ['first', 'fail', 'second', 'third']) {
      await chat.sendMessage({ text });
      chat.clearError();
    }
    await chat.sendMessage({ text: 'other', messageId: chat.messages.findLast((m) => m.role === 'user').id });
    return seen(chat);
  },

  // A page that sends only the newest message continues the conversation.
  async newestOnly() {
    const chat = open('talk', 'newest', { transport: { prepareSendMessagesRequest: ({ id, messages }) => ({ body: { id, message: messages.at(-1) } }) } });
    for (const text of ['first', 'second']) await chat.sendMessage({ text });
    return seen(chat);
  },

  async stop() {
    const chat = open('talk', 'stop');
    const sent = chat.sendMessage({ text: 'slow' });
    await until(() => chat.messages.at(-1)?.parts.some((p) => p.type === 'text' && p.text.includes('two')), 'the first words');
    await chat.stop();
    await sent;
    return seen(chat);
  },

  // A client that reloads takes up the stream of a flow that goes on without it.
  async resume() {
    const first = open('greet', 'resume', { transport: { body: { language: 'Dutch' } } });
    const sent = first.sendMessage({ text: 'slow' });
    await until(() => first.messages.at(-1)?.parts.some((p) => p.type === 'text' && p.text.includes('two')), 'the first words');
    await first.stop();
    await sent;
    const second = open('greet', 'resume');
    second.messages = first.messages.slice(0, 1);
    await second.resumeStream();
    const nothing = open('greet', 'resume');
    await nothing.resumeStream();
    return { second: seen(second), nothing: seen(nothing) };
  },

  async sessionInputs() {
    const chat = open('greet', 'inputs', { transport: { body: { language: 'French' } } });
    await chat.sendMessage({ text: 'hello' });
    const later = open('greet', 'inputs');
    await later.sendMessage({ text: 'hello again' });
    return { first: seen(chat), later: seen(later) };
  },
};

const out = {};
const only = process.argv.slice(3);
for (const [name, run] of Object.entries(scenarios)) {
  if (only.length > 0 && !only.includes(name)) continue;
  try {
    out[name] = await run();
  } catch (e) {
    out[name] = { exception: String(e?.stack ?? e) };
  }
}
console.log(JSON.stringify(out, null, 1));
