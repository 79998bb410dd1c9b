import { describe, expect, it } from 'vitest'
import { normalizeMath } from '@/components/markdown'
import { dayOf, duration, humanize, millis } from '@/lib/format'
import { layoutGraph } from '@/lib/layout'
import { parseProblem } from '@/lib/problem'
import { parseRoute } from '@/lib/router'
import { pythonLiteral, snippetsOf } from '@/lib/snippets'
import { timeline, totals } from '@/lib/trace'
import type { Span } from '@/lib/types'

describe('normalizeMath', () => {
  it.each([
    ['inline \\(a+b\\) here', 'inline $a+b$ here'],
    ['$$x^2$$', '$$\nx^2\n$$'],
    ['costs $5 and $10', 'costs \\$5 and \\$10'],
    ['a $x$ and $5', 'a $x$ and \\$5'],
    ['code `$a$ \\(b\\)`', 'code `$a$ \\(b\\)`'],
    ['\\$5', '\\$5'],
  ])('writes %j as %j', (text, want) => expect(normalizeMath(text)).toBe(want))
})

describe('parseRoute', () => {
  it.each([
    ['', { page: 'home' }],
    ['chat/talk', { page: 'chat', flow: 'talk', session: undefined }],
    ['chat/talk/a%2Fb', { page: 'chat', flow: 'talk', session: 'a/b' }],
    ['form/order', { page: 'form', flow: 'order' }],
    ['trace/run-1', { page: 'trace', run: 'run-1' }],
    ['form/order/x', { page: 'missing', path: 'form/order/x' }],
    ['%zz', { page: 'missing', path: '%zz' }],
  ])('reads %j', (path, want) => expect(parseRoute(path)).toEqual(want))
})

describe('snippets', () => {
  it('quote values for the shell and for Python', () => {
    const s = snippetsOf('http://h/flows/f', { text: "it's", none: null, list: [true] }, true)
    expect(s.curl).toContain(`"it'\\''s"`)
    expect(s.curl).toContain('Bearer $QTYPE_API_KEY')
    expect(s.python).toContain('"none": None')
    expect(pythonLiteral([true, { a: 1 }])).toBe('[\n    True,\n    {\n        "a": 1,\n    },\n]')
  })
})

describe('timeline', () => {
  const span = (id: string, parent: string | null, start: string, end: string, more: Partial<Span> = {}): Span => ({ id, parent, name: id, kind: 'step', start: `2026-01-01T00:00:0${start}Z`, end: `2026-01-01T00:00:0${end}Z`, ...more })
  const spans = [span('late', 'root', '2', '4'), span('root', null, '0', '4'), span('early', 'root', '0', '1.5', { kind: 'model', tokens: { input: 5, output: 1 }, cost: 0.5 }), span('lost', 'unknown', '1', '2')]
  it('puts parents before children and siblings by start', () => {
    expect(timeline(spans).map((l) => [l.span.id, l.depth, l.left, l.width])).toEqual([['root', 0, 0, 100], ['early', 1, 0, 37.5], ['late', 1, 50, 50], ['lost', 0, 25, 25]])
  })
  it('adds the tokens of models only', () => {
    expect(totals([...spans, span('x', null, '0', '1', { tokens: { input: 99 } })])).toEqual({ input: 5, output: 1, cost: 0.5 })
  })
  it('keeps fractions of a millisecond', () => {
    expect(millis('2026-01-01T00:00:00.000250Z') % 1).toBeCloseTo(0.25)
  })
})

describe('layoutGraph', () => {
  it('draws a node below all that it depends on', () => {
    const nodes = ['a', 'b', 'c', 'd'].map((id) => ({ id, type: 'T' }))
    const { nodes: placed, edges } = layoutGraph(nodes, [{ from: 'a', to: 'b' }, { from: 'a', to: 'c' }, { from: 'b', to: 'd' }, { from: 'd', to: 'a' }, { from: 'x', to: 'a' }])
    const y = Object.fromEntries(placed.map((p) => [p.node.id, p.y]))
    expect(y.a).toBeLessThan(y.b)
    expect(y.b).toBe(y.c)
    expect(y.b).toBeLessThan(y.d)
    expect(edges).toHaveLength(4)
  })
})

describe('texts', () => {
  it('are short', () => {
    expect(humanize('support_inbox')).toBe('Support inbox')
    expect([duration(0.5), duration(12.3), duration(1500), duration(65_000)]).toEqual(['0.50 ms', '12 ms', '1.5 s', '1 min 5 s'])
    const now = new Date('2026-03-10T12:00:00')
    expect([dayOf('2026-03-10T01:00:00', now), dayOf('2026-03-09T23:00:00', now), dayOf('2026-03-06T01:00:00', now)]).toEqual(['Today', 'Yesterday', 'This week'])
  })
  it('of errors come from the problem document', () => {
    expect(parseProblem('{"status":422,"code":"invalid","title":"T","detail":"D","errors":[{"pointer":"/a","detail":"x"}]}')).toMatchObject({ status: 422, detail: 'D', fields: [{ pointer: '/a' }] })
    expect(parseProblem('<html>', 502, 'Bad Gateway')).toMatchObject({ status: 502, title: 'Bad Gateway', detail: '<html>' })
  })
})
