import { apiFetch } from './api'
import { problemOf } from './problem'

/** One event of a stream. */
export interface ServerEvent {
  id: string
  event: string
  data: string
}

/** Splits text into events as it arrives, after the rules of server-sent events. */
export class EventParser {
  private rest = ''
  private event: ServerEvent = { id: '', event: '', data: '' }
  private hasData = false

  /** Returns the events that the text completes. */
  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = []
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/)
    this.rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line !== '') this.field(line)
      else if (this.hasData) events.push(this.flush())
    }
    return events
  }

  private field(line: string): void {
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') {
      this.event.data += (this.hasData ? '\n' : '') + value
      this.hasData = true
    } else if (name === 'event') this.event.event = value
    else if (name === 'id') this.event.id = value
  }

  private flush(): ServerEvent {
    const done = this.event
    this.event = { id: done.id, event: '', data: '' }
    this.hasData = false
    return done
  }
}

const wait = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })

/**
 * Reads the events of a path until done returns true for one, and connects again with
 * Last-Event-ID after a broken connection.
 */
export async function readEvents(
  path: string,
  signal: AbortSignal,
  receive: (event: ServerEvent) => boolean,
): Promise<void> {
  let last = ''
  for (let failures = 0; !signal.aborted && failures < 6; ) {
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' }
      if (last) headers['Last-Event-ID'] = last
      const response = await apiFetch(path, { headers, signal })
      if (!response.ok) throw await problemOf(response)
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      const parser = new EventParser()
      for (;;) {
        const { value, done } = await reader.read()
        if (done) break
        for (const event of parser.push(value)) {
          failures = 0
          last = event.id || last
          if (receive(event)) return void reader.cancel().catch(() => undefined)
        }
      }
      failures++
    } catch (error) {
      if (signal.aborted) return
      const status = (error as { status?: number }).status ?? 0
      if (status >= 400 && status < 500) throw error
      if (++failures >= 6) throw error
    }
    await wait(Math.min(400 * 2 ** failures, 5000), signal)
  }
}
