// Runs: their native events, requests, results and traces.
import { EventLog, eventNumber, readBody, sendJSON, sendProblem, sleep } from './http.mjs'

class Run {
  constructor(id, flow, session) {
    Object.assign(this, { id, flow, session, status: 'running', cancelled: false, log: new EventLog(id), outputs: [], errors: [], pending: [], waiting: new Map(), rows: { read: 0, done: 0, failed: 0 }, created: new Date() })
    this.updated = this.created
  }
  emit(type, fields = {}) {
    this.updated = new Date()
    this.log.push({ type, seq: this.log.events.length + 1, time: this.updated.toISOString(), ...fields }, type)
  }
  begin(rows) {
    this.rows.read = rows
    this.emit('run.started', { run: this.id, flow: this.flow, session: this.session })
  }
  /** Opens a request and waits for its answer. */
  request(request) {
    this.pending.push(request)
    this.status = 'waiting'
    this.emit('request.opened', { request })
    return new Promise((resolve) => this.waiting.set(request.id, resolve))
  }
  answer(body) {
    const resolve = this.waiting.get(body.id)
    if (!resolve) return false
    this.waiting.delete(body.id)
    this.pending = this.pending.filter((p) => p.id !== body.id)
    this.status = 'running'
    this.emit('request.answered', { id: body.id })
    resolve(body)
    return true
  }
  cancel() {
    this.cancelled = true
    for (const [id, resolve] of this.waiting) resolve({ id, approved: false, error: 'cancelled' })
    this.waiting.clear()
  }
  finish(status, error) {
    this.status = status
    this.emit('run.finished', { status, ...(error && { error }) })
    this.log.end()
  }
  view() {
    return { id: this.id, flow: this.flow, session: this.session, status: this.status, created: this.created, updated: this.updated, rows: this.rows, pending: this.pending, errors: this.errors, outputs: this.outputs }
  }
}

export function newRun(state, flow, session = null) {
  const run = new Run(`run-${state.runs.size + 1}`, flow, session)
  state.runs.set(run.id, run)
  return run
}

const labels = [[/refund|money|pay/i, 'refund'], [/crush|torn|damag/i, 'damaged'], [/e-book|device|download/i, 'digital'], [/parcel|deliver/i, 'delivery']]

async function output(run, flow, row, i) {
  if (/fail/i.test(row.message ?? '')) throw new Error('the model answered 500 three times')
  if (flow === 'complaint') {
    const schema = { type: 'object', required: ['pay'], properties: { pay: { title: 'pay', type: 'boolean', qtype_type: 'boolean' }, note: { title: 'note', anyOf: [{ type: 'string' }, { type: 'null' }], qtype_type: 'text?' } } }
    const a = await run.request({ id: `req-${run.id}-${i}`, kind: 'client_tool', tool: 'decide', description: 'Should this refund be paid?', arguments: row, schema, step: 'ask', row: i + 1 })
    if (a.error) throw new Error(a.error)
    return a.result
  }
  if (flow === 'order') return { number: 'HL-9001', lines: row.items ?? [], total: (row.quantity ?? 1) * 12.5, ship_to: row.ship_to }
  const label = labels.find(([m]) => m.test(row.message ?? ''))?.[1] ?? 'question'
  return { label, reply: `Thank you for writing. We treat this as **${label}**.` }
}

/** POST /flows/{id}: checks the inputs and starts a run of one or several rows. */
export async function startRun(state, req, res, flow) {
  const body = await readBody(req)
  const many = Array.isArray(body) || Array.isArray(body?.rows)
  const rows = many ? (body.rows ?? body) : [body]
  for (const [i, row] of rows.entries()) {
    if (flow.id === 'classify' && typeof row.message !== 'string') return sendProblem(res, 422, 'invalid_input', 'the input message is missing', [{ pointer: many ? `/${i}/message` : '/message', detail: 'a text is required' }])
  }
  const run = newRun(state, flow.id)
  void work(state, run, rows, flow.id)
  sendJSON(res, 202, { run: run.id, errors: [], outputs: [] }, { Location: `/runs/${run.id}` })
}

async function work(state, run, rows, flow) {
  run.begin(rows.length)
  for (const [i, row] of rows.entries()) {
    if (run.cancelled) break
    for (const step of ['draft', 'ask_label', 'find_order', 'assign_label']) {
      run.emit('step.started', { step, row: i + 1 })
      await sleep(state.pace)
      const text = step === 'draft' ? 'Thank you for writing. ' : ''
      if (text) run.emit('text.delta', { step, row: i + 1, text })
      if (step !== 'assign_label') run.emit('step.finished', { step, row: i + 1, ms: state.pace })
    }
    try {
      const values = await output(run, flow, row, i)
      run.emit('usage', { step: 'draft', model: 'assistant', input: 120, output: 22 })
      run.emit('step.finished', { step: 'assign_label', row: i + 1, ms: state.pace })
      run.outputs.push({ ...values, metadata: { row: i + 1, span_id: '7d1f0c55a0b94e21', trace_id: '0f6c1d1f9a3e4c0b8d2e7a5c4b3a2910' } })
      run.rows.done++
      run.emit('row.finished', { row: i + 1, outputs: values })
    } catch (e) {
      const error = { row: i + 1, step_id: 'assign_label', error_message: e.message, exception_type: 'ModelError' }
      run.errors.push(error)
      run.rows.failed++
      run.emit('step.finished', { step: 'assign_label', row: i + 1, ms: state.pace, error: e.message })
      run.emit('row.finished', { row: i + 1, error })
    }
  }
  run.finish(run.cancelled ? 'cancelled' : run.errors.length === rows.length ? 'failed' : 'succeeded')
}

function traceOf(run) {
  const at = (ms) => new Date(run.created.getTime() + ms).toISOString().replace('Z', '123456Z')
  const span = (id, parent, name, kind, start, end, more = {}) => ({ id, parent, name, kind, start: at(start), end: at(end), attributes: {}, ...more })
  const prompt = [{ role: 'system', content: 'You answer for a bookshop.' }, { role: 'user', content: 'Where is my parcel?' }]
  return {
    spans: [
      span('1', null, `flow.${run.flow}`, 'flow', 0, 1190, { attributes: { 'flow.id': run.flow, 'flow.step_count': 4 } }),
      span('2', '1', 'step.draft', 'step', 4, 824, { step: 'draft' }),
      span('3', '2', 'memory.read chat_memory', 'memory', 5, 18),
      span('4', '2', 'chat gpt-6-luna', 'model', 20, 810, { tokens: { input: 412, output: 38, cached: 128 }, cost: 0.00041, input: prompt, output: 'It is in transit and due on **Monday**.', attributes: { 'llm.model_name': 'gpt-6-luna' } }),
      span('5', '1', 'step.find_order', 'step', 826, 950, { step: 'find_order' }),
      span('6', '5', 'tool find_order', 'tool', 830, 948, { input: { id: 8812 }, output: { status: 'in transit', due: '2026-11-23' } }),
      span('7', '1', 'step.assign_label', 'step', 952, 1188, { step: 'assign_label', ...(run.errors.length && { error: run.errors[0].error_message }) }),
      span('8', '7', 'chat gpt-6-luna', 'model', 956, 1180, { tokens: { input: 96, output: 2 }, cost: 0.00003, input: 'Label the message', output: 'delivery' }),
    ],
  }
}

/** The routes below /runs. */
export async function serveRuns(state, req, res, parts, query) {
  const [id, action] = parts
  if (!id) {
    const runs = [...state.runs.values()].filter((r) => !query.get('flow') || r.flow === query.get('flow')).reverse()
    return sendJSON(res, 200, { runs: runs.map((r) => r.view()), next: null })
  }
  const run = state.runs.get(id)
  if (!run) return sendProblem(res, 404, 'not_found', `no run "${id}"`)
  if (!action) return sendJSON(res, 200, run.view())
  if (action === 'trace') return sendJSON(res, 200, traceOf(run))
  if (action === 'cancel') return run.cancel(), sendJSON(res, 202, run.view())
  if (action === 'answer') {
    return run.answer(await readBody(req)) ? sendJSON(res, 200, run.view()) : sendProblem(res, 409, 'conflict', 'this request was answered before')
  }
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
  return run.log.serve(res, eventNumber(req) || Number(query.get('from') ?? 0))
}
