// The stream of a chat: canned answers in the AI SDK's protocol, next to native events.
import { EventLog, readBody, sendProblem, sleep } from './http.mjs'
import { newRun } from './runs.mjs'

const answers = {
  table: 'Here are our delivery times:\n\n| Country | Days | Price |\n| --- | ---: | ---: |\n| Portugal | 2 | €3.90 |\n| Germany | 4 | €6.50 |\n| Japan | 9 | €14.00 |\n\nThe expected time is $t = d / v + \\sigma$, and the share that arrives late is\n\n$$P(T > t) = 1 - \\int_0^t f(x)\\,dx$$\n',
  code: 'This reads the orders:\n\n```python\nimport csv\n\ndef orders(path: str) -> list[dict]:\n    """Read all orders of a file."""\n    with open(path) as f:\n        return [row for row in csv.DictReader(f) if row["id"]]\n```\n\nRun it with `python orders.py`.\n',
  long: Array.from({ length: 20 }, (_, i) => `Sentence ${i + 1} of a long answer about the history of bookshops.`).join(' '),
}

/** The turns by what the newest message contains. */
const scripts = [
  [/fail|error/i, async (t) => {
    await t.text('I will look into that')
    throw new Error('the model answered 500 three times; the step draft gave up')
  }],
  [/refund/i, async (t) => {
    await t.reasoning('The customer wants a refund. The tool refund pays it, but it needs approval.')
    const ok = await t.approval('refund', { order: 'HL-8812', amount: 39.9 })
    await t.text(ok ? 'The refund of **€39.90** is on its way. It takes five working days.' : 'I have not paid the refund.')
  }],
  [/parcel|order/i, async (t) => {
    await t.reasoning('The customer misses a parcel. I look up the order before I answer.')
    await t.tool('find_order', { id: 8812 }, { status: 'in transit', carrier: 'Correios', due: '2026-11-23' })
    await t.text('Your parcel is **in transit** with Correios and due on *Monday, 23 November*.')
    t.source('https://example.com/delivery', 'Delivery times')
    t.source('https://example.com/carriers', 'Our carriers')
  }],
  [/table|formula|math/i, (t) => t.text(answers.table)],
  [/code|program/i, (t) => t.text(answers.code)],
  [/long|slow/i, (t) => t.text(answers.long, 40)],
  [/./s, (t) => t.text('Thank you, I have noted that with your order. Is there anything else that I can do?')],
]

class Turn {
  constructor(run, log, pace) {
    Object.assign(this, { run, log, pace, n: 0, parts: [] })
  }
  send(chunk) {
    if (this.run.cancelled) throw new Error('cancelled')
    this.log.push(chunk)
  }
  async stream(kind, text, pace) {
    const id = `${kind}-${this.n++}`
    this.send({ type: `${kind}-start`, id })
    for (const delta of text.match(/\S+\s*/g) ?? []) {
      this.send({ type: `${kind}-delta`, id, delta })
      this.run.emit(`${kind}.delta`, { step: 'draft', row: 1, text: delta })
      await sleep(pace ?? this.pace)
    }
    this.send({ type: `${kind}-end`, id })
    this.parts.push({ type: kind, text })
  }
  text = (text, pace) => this.stream('text', text, pace)
  reasoning = (text) => this.stream('reasoning', text)
  source(url, title) {
    this.send({ type: 'source-url', sourceId: url, url, title })
    this.parts.push({ type: 'source-url', sourceId: url, url, title })
  }
  call(tool, input) {
    const toolCallId = `call-${this.run.id}-${this.n++}`
    this.send({ type: 'tool-input-start', toolCallId, toolName: tool, providerExecuted: true })
    this.send({ type: 'tool-input-available', toolCallId, toolName: tool, input, providerExecuted: true })
    this.run.emit('tool.called', { step: 'draft', row: 1, call: toolCallId, tool, arguments: input })
    return toolCallId
  }
  returned(toolCallId, tool, input, output) {
    this.run.emit('tool.returned', { step: 'draft', row: 1, call: toolCallId, tool, result: output })
    this.send({ type: 'tool-output-available', toolCallId, output, providerExecuted: true })
    this.parts.push({ type: `tool-${tool}`, toolCallId, state: 'output-available', input, output })
  }
  async tool(tool, input, output) {
    const id = this.call(tool, input)
    await sleep(this.pace * 6)
    this.returned(id, tool, input, output)
  }
  async approval(tool, input) {
    const id = this.call(tool, input)
    const request = { id: `req-${id}`, kind: 'approval', tool, description: 'Pays an order back.', arguments: input, step: 'draft', row: 1 }
    this.send({ type: 'tool-approval-request', approvalId: request.id, toolCallId: id })
    const answer = await this.run.request(request)
    if (answer.approved) this.returned(id, tool, input, { receipt: 'R8812' })
    else this.send({ type: 'tool-output-denied', toolCallId: id })
    return answer.approved
  }
}

const textOf = (m) => m?.parts?.filter((p) => p.type === 'text').map((p) => p.text).join('') ?? ''

/** POST /flows/{id}/stream. */
export async function startChat(state, req, res, flow) {
  const body = await readBody(req)
  const message = body.message ?? body.messages?.at(-1)
  if (message?.role !== 'user') return sendProblem(res, 400, 'malformed', 'the last message must be from the user', [{ pointer: '/messages', detail: 'must end with a user message' }])
  let s = state.sessions.get(body.id)
  if (!s) {
    s = { id: body.id, title: textOf(message).slice(0, 60), flow, created: new Date().toISOString(), updated: '', run: null, messages: [], flushes: [] }
    state.sessions.set(s.id, s)
  }
  if (s.run) return sendProblem(res, 409, 'conflict', 'another turn of this session is running')
  const run = newRun(state, flow, s.id)
  s.run = run.id
  const log = new EventLog(run.id)
  state.chats.set(s.id, log)
  void work(state, s, run, log, message)
  return follow(res, log, run.id)
}

export function follow(res, log, run, after = 0) {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', 'x-vercel-ai-ui-message-stream': 'v1', 'X-Run-Id': run })
  return log.serve(res, after)
}

async function work(state, s, run, log, message) {
  const turn = new Turn(run, log, state.pace)
  const number = Math.max(0, ...s.messages.map((m) => m.turn)) + 1
  const text = textOf(message)
  let failed = ''
  run.begin(1)
  log.push({ type: 'start', messageId: `a-${run.id}` })
  log.push({ type: 'start-step' })
  log.push({ type: 'message-metadata', messageMetadata: { step_id: 'draft', statusMessage: 'The model is answering.' } })
  run.emit('step.started', { step: 'draft', row: 1 })
  try {
    await scripts.find(([match]) => match.test(text || ' '))[1](turn)
  } catch (e) {
    failed = e.message
    log.push({ type: 'error', errorText: failed })
  }
  run.emit('step.finished', { step: 'draft', row: 1, ms: 812, ...(failed && { error: failed }) })
  run.emit('usage', { step: 'draft', model: 'assistant', input: 412, output: 38 })
  if (!failed) store(s, number, message, turn.parts, run.cancelled)
  s.run = null
  s.updated = new Date().toISOString()
  run.finish(run.cancelled ? 'cancelled' : failed ? 'failed' : 'succeeded', failed)
  log.push({ type: 'finish-step' })
  log.push({ type: 'finish', messageMetadata: { span_id: '7d1f0c55a0b94e21', trace_id: '0f6c1d1f9a3e4c0b8d2e7a5c4b3a2910' } })
  log.push('[DONE]')
  log.end()
  state.chats.delete(s.id)
}

function store(s, turn, message, parts, stopped) {
  const add = (role, p, tokens) => {
    const seq = s.messages.length + 1
    s.messages.push({ id: `${s.id}-${seq}`, seq, turn, role, parts: p, tokens, time: new Date().toISOString(), status: 'in_window' })
  }
  add('user', message.parts, 5 + Math.round(textOf(message).length / 4))
  add('assistant', parts, 10 + Math.round(JSON.stringify(parts).length / 6))
  s.messages.at(-1).stopped = stopped
}
