// A server with the API of qtype serve and canned answers, for the development and the
// tests of the web interface: node test/mock/server.mjs [port].
// PUT /mock changes its application: {app: {...}, key: "...", down: bool}.
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { follow, startChat } from './chat.mjs'
import { app, flows, graph, seedSessions } from './data.mjs'
import { eventNumber, readBody, sendJSON, sendProblem } from './http.mjs'
import { serveRuns, startRun } from './runs.mjs'
import { serveSessions } from './sessions.mjs'

const dist = fileURLToPath(new URL('../../dist', import.meta.url))
const port = Number(process.argv[2] ?? process.env.PORT ?? 8765)
const fresh = () => ({ app: structuredClone(app), sessions: seedSessions(), runs: new Map(), chats: new Map(), feedback: [], key: '', pace: Number(process.env.PACE ?? 25) })
let state = fresh()

const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' }
const csp = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; base-uri 'self'"

function serveFile(res, pathname) {
  const file = path.join(dist, path.normalize(pathname))
  for (const [name, coding] of [[file, {}], [`${file}.gz`, { 'Content-Encoding': 'gzip' }]]) {
    if (!file.startsWith(dist) || !fs.statSync(name, { throwIfNoEntry: false })?.isFile()) continue
    res.writeHead(200, { 'Content-Type': types[path.extname(file)] ?? 'application/octet-stream', ...coding })
    return res.end(fs.readFileSync(name))
  }
  const segments = pathname.split('/').filter(Boolean)
  const base = '../'.repeat(Math.max(0, segments.length - 1)) || './'
  res.writeHead(200, { 'Content-Type': types['.html'], 'Content-Security-Policy': csp })
  res.end(fs.readFileSync(path.join(dist, 'index.html'), 'utf8').replace('<base href="./" />', `<base href="${base}" />`))
}

async function configure(req, res) {
  const change = await readBody(req)
  if (change.reset) state = fresh()
  Object.assign(state.app, change.app)
  for (const k of ['key', 'pace']) if (change[k] !== undefined) state[k] = change[k]
  sendJSON(res, 200, { feedback: state.feedback })
}

async function serveFlows(req, res, parts) {
  const [id, action, chat] = parts
  if (!id) return sendJSON(res, 200, flows)
  const flow = flows.find((f) => f.id === id)
  if (!flow) return sendProblem(res, 404, 'not_found', `no flow "${id}"`)
  if (action === 'graph') return sendJSON(res, 200, graph)
  if (action === 'stream' && req.method === 'POST') return startChat(state, req, res, id)
  if (action === 'stream') {
    const log = state.chats.get(chat)
    if (log) return follow(res, log, state.sessions.get(chat).run, eventNumber(req))
    res.writeHead(204)
    return res.end()
  }
  return startRun(state, req, res, flow)
}

async function route(req, res) {
  const url = new URL(req.url, 'http://localhost')
  const [first, ...parts] = url.pathname.split('/').filter(Boolean).map(decodeURIComponent)
  if (first === 'mock') return configure(req, res)
  const isAPI = ['app', 'flows', 'runs', 'sessions', 'feedback'].includes(first)
  if (!isAPI) return serveFile(res, url.pathname)
  if (state.key && req.headers.authorization !== `Bearer ${state.key}`) return sendProblem(res, 401, 'unauthenticated', 'an API key is required')
  if (first === 'app') return sendJSON(res, 200, { ...state.app, flows: flows.length })
  if (first === 'flows') return serveFlows(req, res, parts)
  if (first === 'runs') return serveRuns(state, req, res, parts, url.searchParams)
  if (first === 'sessions') return serveSessions(state, req, res, parts, url.searchParams)
  state.feedback.push(await readBody(req))
  sendJSON(res, 200, { status: 'success', message: 'Feedback submitted successfully' })
}

http
  .createServer((req, res) => {
    route(req, res).catch((e) => res.headersSent ? res.end() : sendProblem(res, 500, 'internal', e.message))
  })
  .listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`))
