import { millis } from './format'
import type { Span } from './types'

/** A span with its place in the waterfall; left and width are percentages of the whole run. */
export interface TraceLine {
  span: Span
  depth: number
  left: number
  width: number
  ms: number
  start: number // milliseconds since the start of the run
}

/** The spans as lines of a waterfall: parents before their children, siblings by start. */
export function timeline(spans: Span[]): TraceLine[] {
  if (spans.length === 0) return []
  const begin = Math.min(...spans.map((s) => millis(s.start)))
  const finish = Math.max(...spans.map((s) => millis(s.end || s.start)))
  const whole = Math.max(finish - begin, 0.001)
  const ids = new Set(spans.map((s) => s.id))
  const children = new Map<string, Span[]>()
  for (const s of spans) {
    const parent = s.parent && ids.has(s.parent) && s.parent !== s.id ? s.parent : ''
    children.set(parent, [...(children.get(parent) ?? []), s])
  }
  const lines: TraceLine[] = []
  const visit = (parent: string, depth: number) => {
    const list = (children.get(parent) ?? []).sort((a, b) => millis(a.start) - millis(b.start))
    for (const span of list) {
      const start = millis(span.start) - begin
      const ms = (span.end ? millis(span.end) : finish) - begin - start
      lines.push({ span, depth, start, ms, left: (100 * start) / whole, width: (100 * ms) / whole })
      if (depth < 40) visit(span.id, depth + 1)
    }
  }
  visit('', 0)
  return lines
}

/** Tokens and cost of all calls of models. A span that only repeats those of its children is not counted. */
export function totals(spans: Span[]): { input: number; output: number; cost?: number } {
  const counted = spans.filter((s) => s.kind === 'model' || s.kind === 'embedding')
  const input = counted.reduce((n, s) => n + (s.tokens?.input ?? 0), 0)
  const output = counted.reduce((n, s) => n + (s.tokens?.output ?? 0), 0)
  const costs = counted.map((s) => s.cost).filter((c): c is number => typeof c === 'number')
  return { input, output, cost: costs.length ? costs.reduce((a, b) => a + b, 0) : undefined }
}
