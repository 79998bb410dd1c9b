// Calls a server with OpenAI's package for Node: client.mjs BASE. It prints one JSON object
// with what each scenario has returned.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.QTYPE_OPENAI_NODE + '/index.js');
const { default: OpenAI } = await import(pathToFileURL(require.resolve('openai')).href);

const baseURL = process.argv[2] + '/v1';
const client = new OpenAI({ baseURL, apiKey: 'ada-key-0123456789', maxRetries: 0 });
const user = (content) => ({ role: 'user', content });
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const tool = { type: 'function', function: { name: 'get_weather', description: 'The weather of a city', strict: true, parameters } };

async function name(call) {
  try {
    await call();
  } catch (e) {
    return e.constructor.name;
  }
  return 'no error';
}

// The tool runner of the package: it calls functions until there is an answer.
async function run(stream) {
  const called = [];
  const runner = client.chat.completions.runTools({
    model: 'work', stream, messages: [user('weather in Rome and Oslo')],
    tools: [{ type: 'function', function: { name: 'get_weather', parameters, parse: JSON.parse, function: ({ city }) => { called.push(city); return 'sunny'; } } }],
  });
  return { text: await runner.finalContent(), called: called.sort() };
}

const scenarios = {
  // The client keeps the conversation.
  async chat() {
    const messages = [{ role: 'system', content: 'Be kind.' }];
    const texts = [];
    for (const text of ['one', 'two', 'three']) {
      messages.push(user(text));
      const answer = await client.chat.completions.create({ model: 'talk', messages, temperature: 0.5 });
      messages.push(answer.choices[0].message);
      texts.push(answer.choices[0].message.content);
    }
    return texts;
  },
  async chatStream() {
    const messages = [];
    const texts = [];
    const usage = [];
    for (const text of ['one', 'two']) {
      messages.push(user(text));
      let content = '';
      for await (const chunk of await client.chat.completions.create({ model: 'talk', messages, stream: true, stream_options: { include_usage: true } })) {
        content += chunk.choices[0]?.delta.content ?? '';
        if (chunk.usage) usage.push(chunk.usage.total_tokens);
      }
      messages.push({ role: 'assistant', content });
      texts.push(content);
    }
    return { texts, usage };
  },
  // The helper that accumulates a stream.
  async chatHelper() {
    let deltas = '';
    const stream = client.chat.completions.stream({ model: 'talk', messages: [user('think')] }).on('content', (delta) => { deltas += delta; });
    return { text: await stream.finalContent(), deltas, reason: (await stream.finalChatCompletion()).choices[0].finish_reason };
  },
  async session() {
    const options = { headers: { 'X-Session-Id': 'node' } };
    const texts = [];
    for (const text of ['a', 'b']) texts.push((await client.chat.completions.create({ model: 'talk', messages: [user(text)] }, options)).choices[0].message.content);
    texts.push((await client.chat.completions.create({ model: 'talk', messages: [user('c')], metadata: { session_id: 'node' } })).choices[0].message.content);
    return texts;
  },
  async inputs() {
    return (await client.chat.completions.create({ model: 'greet', messages: [user('hi')], inputs: { name: 'Ada', stars: 5 } })).choices[0].message.content;
  },
  async tools() {
    const messages = [user('weather in Rome and Oslo')];
    const rounds = [];
    for (;;) {
      const { message, finish_reason } = (await client.chat.completions.create({ model: 'work', messages, tools: [tool], tool_choice: 'auto' })).choices[0];
      messages.push(message);
      rounds.push(finish_reason);
      if (finish_reason !== 'tool_calls') return { rounds, text: message.content, calls: messages[1].tool_calls.length };
      for (const call of message.tool_calls) messages.push({ role: 'tool', tool_call_id: call.id, content: 'sunny' });
    }
  },
  toolRunner: () => run(false),
  toolRunnerStream: () => run(true),
  async responses() {
    const first = await client.responses.create({ model: 'talk', input: 'one', instructions: 'Be kind.' });
    const second = await client.responses.create({ model: 'talk', input: 'two', previous_response_id: first.id });
    let deltas = '';
    const stream = client.responses.stream({ model: 'talk', input: 'three', previous_response_id: second.id }).on('response.output_text.delta', (e) => { deltas += e.delta; });
    const third = await stream.finalResponse();
    return { texts: [first.output_text, second.output_text, third.output_text], same: deltas === third.output_text, status: third.status };
  },
  async responsesTools() {
    const tools = [{ type: 'function', ...tool.function }];
    const first = await client.responses.create({ model: 'work', input: 'weather in Rome and Oslo', tools });
    const input = first.output.map((o) => ({ type: 'function_call_output', call_id: o.call_id, output: 'sunny' }));
    const last = await client.responses.create({ model: 'work', previous_response_id: first.id, input, tools });
    return { calls: first.output.map((o) => o.name), text: last.output_text };
  },
  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.id);
    return { ids, one: (await client.models.retrieve('talk')).object };
  },
  async embeddings() {
    const two = await client.embeddings.create({ model: 'vectors', input: ['one two', 'three'] });
    const plain = await client.embeddings.create({ model: 'vectors', input: 'one two', encoding_format: 'float' });
    return {
      dimensions: two.data.map((d) => d.embedding.length), tokens: two.usage.total_tokens,
      same: two.data[0].embedding.every((x, i) => Math.abs(x - plain.data[0].embedding[i]) < 1e-6),
    };
  },
  async errors() {
    const create = (body) => client.chat.completions.create({ model: 'talk', messages: [user('x')], ...body });
    const limit = await create({ messages: [user('limit')] }).catch((e) => ({ after: e.headers.get('retry-after'), code: e.code, type: e.type }));
    const param = await create({ n: 2 }).catch((e) => e.param);
    const first = await client.chat.completions.create({ model: 'once', messages: [user('slow')], stream: true }, { headers: { 'X-Session-Id': 'busy node' } });
    const chunks = first[Symbol.asyncIterator]();
    await chunks.next();
    const conflict = await name(() => client.chat.completions.create({ model: 'once', messages: [user('x')] }, { headers: { 'X-Session-Id': 'busy node' } }));
    first.controller.abort();
    return {
      BadRequestError: await name(() => create({ n: 2 })),
      AuthenticationError: await name(() => client.withOptions({ apiKey: 'wrong' }).models.list()),
      PermissionDeniedError: await name(() => create({ model: 'guarded' })),
      NotFoundError: await name(() => create({ model: 'none' })),
      ConflictError: conflict,
      UnprocessableEntityError: await name(() => create({ model: 'greet' })),
      RateLimitError: await name(() => create({ messages: [user('limit')], stream: true })),
      InternalServerError: await name(() => create({ messages: [user('broken')] })),
      limit, param,
    };
  },
  // An error after the stream has begun.
  async streamError() {
    try {
      for await (const chunk of await client.chat.completions.create({ model: 'late', messages: [user('think')], stream: true })) void chunk;
    } catch (e) {
      return { error: e.message, code: e.code };
    }
    return {};
  },
  async abort() {
    const stream = await client.chat.completions.create({ model: 'talk', messages: [user('slow')], stream: true });
    for await (const chunk of stream) {
      const text = chunk.choices[0].delta.content;
      if (text) {
        stream.controller.abort();
        return text;
      }
    }
  },
  async concurrent() {
    const answers = await Promise.all([...Array(8).keys()].map((i) => client.chat.completions.create({ model: 'talk', messages: [user(`${i}`)] })));
    return answers.map((a) => a.choices[0].message.content.split('"')[1]);
  },
};

const results = {};
for (const [key, scenario] of Object.entries(scenarios)) {
  try {
    results[key] = await scenario();
  } catch (e) {
    results[key] = { exception: `${e.constructor.name}: ${e.message}` };
  }
}
console.log(JSON.stringify(results));
