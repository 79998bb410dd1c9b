// What the routes of the mock server share: answers, bodies and streams of events.

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export function sendJSON(res, status, value, headers = {}) {
  res.writeHead(status, { 'Content-Type': 'application/json', ...headers })
  res.end(value === undefined ? '' : JSON.stringify(value))
}

export function sendProblem(res, status, code, detail, errors) {
  const titles = { 400: 'Bad Request', 401: 'Unauthorized', 404: 'Not Found', 409: 'Conflict', 422: 'Unprocessable Entity', 503: 'Service Unavailable' }
  res.writeHead(status, { 'Content-Type': 'application/problem+json' })
  res.end(JSON.stringify({ status, code, title: titles[status] ?? 'Error', detail, errors }))
}

export async function readBody(req) {
  const chunks = []
  for await (const c of req) chunks.push(c)
  const text = Buffer.concat(chunks).toString()
  return text ? JSON.parse(text) : undefined
}

/** How many events the client has: the header has the id of the run and a number. */
export const eventNumber = (req) => Number(/:(\d+)$/.exec(req.headers['last-event-id'] ?? '')?.[1] ?? 0)

/** A list of events that is replayed to new readers and followed by what comes later. */
export class EventLog {
  constructor(run) {
    this.run = run
  }
  events = []
  ended = false
  #readers = new Set()

  push(data, type) {
    this.events.push({ id: this.events.length + 1, type, data })
    this.#wake()
  }
  end() {
    this.ended = true
    this.#wake()
  }
  #wake() {
    for (const wake of this.#readers) wake()
  }

  /** Writes the events after an id to a response until the log ends or the reader leaves. */
  async serve(res, after = 0) {
    let open = true
    res.on('close', () => ((open = false), this.#wake()))
    for (let i = after; open; ) {
      while (open && i < this.events.length) {
        const e = this.events[i++]
        res.write(`id: ${this.run}:${e.id}\n${e.type ? `event: ${e.type}\n` : ''}data: ${typeof e.data === 'string' ? e.data : JSON.stringify(e.data)}\n\n`)
      }
      if (this.ended && i >= this.events.length) break
      await new Promise((resolve) => {
        const wake = () => (this.#readers.delete(wake), resolve())
        this.#readers.add(wake)
      })
    }
    res.end()
  }
}
