import { describe, expect, it } from 'vitest'
import { emptyRun, reduceRun, type RunEvent } from '@/lib/runstate'
import { EventParser } from '@/lib/sse'

describe('EventParser', () => {
  const text = ': comment\nid: 1\nevent: usage\ndata: {"a":\ndata: 1}\n\ndata:  two\r\n\r\nevent: empty\n\nid: 7\ndata: x\n\n'
  const want = [
    { id: '1', event: 'usage', data: '{"a":\n1}' },
    { id: '1', event: '', data: ' two' },
    { id: '7', event: 'empty', data: 'x' },
  ]
  it('reads events however the text is split', () => {
    for (let size = 1; size < text.length; size++) {
      const parser = new EventParser()
      const events = []
      for (let i = 0; i < text.length; i += size) events.push(...parser.push(text.slice(i, i + size)))
      expect(events.map((e) => e.data)).toEqual(want.map((e) => e.data))
      expect(events[0]).toEqual(want[0])
    }
  })
})

describe('reduceRun', () => {
  const events: RunEvent[] = [
    { type: 'run.started', run: 'r1', flow: 'f' },
    { type: 'step.started', step: 'draft', row: 0 },
    { type: 'text.delta', step: 'draft', row: 0, text: 'He' },
    { type: 'text.delta', step: 'draft', row: 0, text: 'llo' },
    { type: 'tool.called', step: 'draft', row: 0, call: 'c', tool: 'find', time: '2026-01-01T00:00:00Z' },
    { type: 'tool.returned', step: 'draft', row: 0, call: 'c', tool: 'find', time: '2026-01-01T00:00:01Z' },
    { type: 'request.opened', request: { id: 'q', kind: 'approval', tool: 'pay', arguments: {} } },
    { type: 'request.answered', id: 'q' },
    { type: 'usage', step: 'draft', input: 10, output: 2 },
    { type: 'step.finished', step: 'draft', row: 0, ms: 12 },
    { type: 'row.finished', row: 0, outputs: { a: 1 } },
    { type: 'step.started', step: 'draft', row: 1 },
    { type: 'step.finished', step: 'draft', row: 1, ms: 3, error: 'no answer' },
    { type: 'row.finished', row: 1, error: { step_id: 'draft', error_message: 'no answer' } },
    { type: 'run.finished', status: 'succeeded' },
  ].map((e, i) => ({ ...e, seq: i + 1 }))
  const states = events.reduce((all, e) => [...all, reduceRun(all.at(-1)!, e)], [emptyRun()])

  it('follows rows, steps, tools and tokens', () => {
    const end = states.at(-1)!
    expect(end.status).toBe('succeeded')
    expect(end.rows[0]).toMatchObject({ status: 'done', text: 'Hello', outputs: { a: 1 } })
    expect(end.rows[1]).toMatchObject({ status: 'failed', error: { step_id: 'draft', error_message: 'no answer' } })
    expect(end.steps.draft).toEqual({ running: 0, done: 1, failed: 1, ms: 15, error: 'no answer' })
    expect(end.tools.c.end! - end.tools.c.start!).toBe(1000)
    expect(end.tokens).toEqual({ input: 10, output: 2 })
  })
  it('waits while a request is open', () => {
    expect(states[7]).toMatchObject({ status: 'waiting', pending: [{ id: 'q' }] })
    expect(states[8]).toMatchObject({ status: 'running', pending: [] })
  })
  it('ignores events that it has seen', () => {
    const end = states.at(-1)!
    expect(events.reduce(reduceRun, end)).toBe(end)
  })
  it('ignores types that it does not know', () => {
    expect(reduceRun(emptyRun(), { type: 'new.thing', seq: 1 }).status).toBe('starting')
  })
})
