import { describe, expect, it } from 'vitest'
import { chunksOf } from '@/batch/chunks'
import { withMessages } from '@/context/blocks'
import { messageText } from '@/lib/format'
import { mediaOf } from '@/lib/media'
import type { StoredMessage } from '@/lib/types'

const rows = (n: number, more: (i: number) => object = () => ({})) => Array.from({ length: n }, (_, index) => ({ index, inputs: {}, ...more(index) }))

describe('chunksOf', () => {
  it('puts rows without a conversation into requests of 100', () => {
    expect(chunksOf(rows(250)).map((c) => c.rows.length)).toEqual([100, 100, 50])
  })
  it('puts each conversation into one request, in the order of its rows', () => {
    const chunks = chunksOf(rows(300, (i) => ({ session: i % 2 ? 'a' : 'b', alone: true })))
    expect(chunks.map((c) => [c.session, c.rows.length, c.rows[1].index])).toEqual([['b', 150, 2], ['a', 150, 3]])
  })
  it('separates rows that are conversations by themselves', () => {
    expect(chunksOf(rows(3, () => ({ alone: true }))).map((c) => c.rows.length)).toEqual([1, 1, 1])
  })
})

describe('withMessages', () => {
  const message = (role: string, status: string) => ({ role, status, tokens: 3, parts: [{ type: 'text', text: role }] }) as StoredMessage
  it('shows the messages of the window in place of their sum', () => {
    const blocks = withMessages([{ kind: 'system', tokens: 5, text: 's' }, { kind: 'messages', tokens: 6, units: 2 }], [message('user', 'evicted'), message('user', 'in_window'), message('assistant', 'in_window')])
    expect(blocks.map((b) => [b.kind, b.role, b.tokens])).toEqual([['system', undefined, 5], ['messages', 'user', 3], ['messages', 'assistant', 3]])
  })
})

describe('messageText', () => {
  it('is the text of the blocks of a message', () => {
    expect(messageText({ role: 'user', blocks: [{ type: 'text', content: 'a' }, { type: 'image', content: 'AAAA' }] })).toBe('a\n\n[image]')
    expect(messageText({ a: 1 })).toBeUndefined()
  })
})

describe('mediaOf', () => {
  it('knows files by their media type or their content', () => {
    expect(mediaOf({ base64: 'iVBORw0KGgoAAAA=' })).toMatchObject({ mime: 'image/png', name: 'file.png' })
    expect(mediaOf({ bytes_base64: 'AAAA', mime: 'audio/wav', filename: 'a.wav' })).toEqual({ base64: 'AAAA', mime: 'audio/wav', name: 'a.wav' })
    expect(mediaOf({ a: 1 })).toBeUndefined()
  })
})
