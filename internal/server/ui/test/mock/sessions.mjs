// The routes of sessions.
import { readBody, sendJSON, sendProblem } from './http.mjs'

const limit = 35_000
const inWindow = (s) => s.messages.filter((m) => m.status === 'in_window')
const tokens = (messages) => messages.reduce((n, m) => n + m.tokens, 0)

const memoryOf = (s) => {
  const kept = inWindow(s)
  const used = 21 + 14 + (s.summary ? 30 : 0) + tokens(kept)
  return { id: 'chat_memory', policy: 'token_window', messages: s.messages.length, in_window: kept.length, used: used + 2900, limit, unit: 'tokens', tokens: tokens(s.messages), flushes: s.flushes.length }
}
const summaryOf = (s) => ({ id: s.id, title: s.title, flow: s.flow, messages: s.messages.length, updated: s.updated, memories: ['chat_memory'] })
const detailOf = (s) => ({ id: s.id, title: s.title, flow: s.flow, created: s.created, updated: s.updated, memories: s.messages.length ? [memoryOf(s)] : [], run: s.run })

function contextOf(s) {
  const textOf = (m) => m.parts.map((p) => p.text ?? (p.output ? JSON.stringify(p.output) : `${p.type.slice(5)}(${JSON.stringify(p.input)})`)).join(' ')
  const blocks = [
    { kind: 'system', role: 'system', tokens: 21, units: 21, text: 'You answer the customers of Harbour Lane Books, a bookshop. Be kind, brief and concrete.' },
    { kind: 'pinned', tokens: 2914, units: 2914, text: 'Delivery takes three days. Refunds take five working days. Gift cards are good for three years. '.repeat(12), cut: true },
  ]
  if (s.summary) blocks.push({ kind: 'summary', tokens: 30, units: 30, text: s.summary })
  for (const m of inWindow(s)) blocks.push({ kind: 'messages', role: m.role, tokens: m.tokens, units: m.tokens, text: textOf(m) })
  return { memory: 'chat_memory', used: memoryOf(s).used, limit, unit: 'tokens', model: 'gpt-6-luna', context_window: 922_000, blocks, flushes: s.flushes, summary: s.summary }
}

/** Answers a request for sessions; parts are the segments of the path after "sessions". */
export async function serveSessions(state, req, res, parts, query) {
  const [id, action] = parts
  if (!id) {
    const q = (query.get('q') ?? '').toLowerCase()
    const found = [...state.sessions.values()].filter((s) => s.messages.length > 0 && `${s.id} ${s.title}`.toLowerCase().includes(q))
    return sendJSON(res, 200, { sessions: found.sort((a, b) => b.updated.localeCompare(a.updated)).map(summaryOf), next: null })
  }
  const s = state.sessions.get(id)
  if (!s) return sendProblem(res, 404, 'not_found', `no session "${id}"`)
  if (req.method === 'DELETE') {
    state.sessions.delete(id)
    res.writeHead(204)
    return res.end()
  }
  if (req.method === 'PATCH') {
    s.title = (await readBody(req)).title
    return sendJSON(res, 200, detailOf(s))
  }
  if (req.method === 'POST') return change(state, s, action, await readBody(req), res)
  if (!action) return sendJSON(res, 200, detailOf(s))
  if (action === 'messages') return sendJSON(res, 200, { messages: s.messages, previous: null })
  if (action === 'context') return sendJSON(res, 200, contextOf(s))
  if (action === 'test') {
    res.writeHead(200, { 'Content-Type': 'application/yaml' })
    return res.end('tests: []\n')
  }
  if (action === 'export') {
    res.writeHead(200, { 'Content-Type': 'application/jsonl' })
    return res.end(s.messages.map((m) => `${JSON.stringify(m)}\n`).join(''))
  }
  return sendProblem(res, 404, 'not_found', 'no such resource')
}

function change(state, s, action, body, res) {
  if (action === 'rewind') {
    for (const m of s.messages) if (m.turn >= (body.turn ?? body.keep + 1)) m.status = 'replaced'
    return sendJSON(res, 200, detailOf(s))
  }
  if (action === 'fork') {
    const copy = structuredClone(s)
    copy.id = `${s.id}-fork-${state.sessions.size}`
    copy.title = `${s.title} (fork)`
    copy.run = null
    copy.messages = copy.messages.filter((m) => m.turn <= body.turn)
    copy.updated = new Date().toISOString()
    state.sessions.set(copy.id, copy)
    return sendJSON(res, 201, detailOf(copy))
  }
  return sendProblem(res, 404, 'not_found', 'no such resource')
}
