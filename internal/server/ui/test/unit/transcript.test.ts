import { describe, expect, it } from 'vitest'
import { placesOf, textOf, toChat, type ChatMessage } from '@/lib/transcript'
import type { StoredMessage } from '@/lib/types'

const text = (t: string) => [{ type: 'text' as const, text: t }]
const stored = (seq: number, turn: number, role: string, parts: unknown, status: StoredMessage['status'] = 'in_window') => ({ id: `m${seq}`, seq, turn, role, parts, status }) as StoredMessage
const history = [
  stored(1, 1, 'user', text('one'), 'evicted'),
  stored(2, 1, 'assistant', text('first'), 'evicted'),
  stored(3, 2, 'user', text('gone'), 'replaced'),
  stored(4, 3, 'user', text('two')),
  stored(5, 3, 'assistant', [{ type: 'tool-find', toolCallId: 'c', state: 'input-available', input: { id: 1 } }]),
  stored(6, 3, 'tool', [{ type: 'tool-find', toolCallId: 'c', state: 'output-available', output: 'x' }]),
  stored(7, 3, 'assistant', text('second')),
]

describe('toChat', () => {
  const chat = toChat(history)
  it('makes one message of what follows a question', () => {
    expect(chat.map((m) => [m.role, textOf(m.parts)])).toEqual([['user', 'one'], ['assistant', 'first'], ['user', 'two'], ['assistant', 'second']])
  })
  it('puts the result of a tool into its call', () => {
    expect(chat[3].parts[0]).toMatchObject({ toolCallId: 'c', state: 'output-available', input: { id: 1 }, output: 'x' })
    expect(chat[3].parts).toHaveLength(2)
  })
})

describe('placesOf', () => {
  it('finds the turns of messages that have other ids', () => {
    const chat = toChat(history).map((m, i) => ({ ...m, id: `live${i}` }))
    const places = placesOf(chat, history)
    expect([...places].map(([id, p]) => [id, p.turn, p.status]).sort()).toEqual([['live0', 1, 'evicted'], ['live1', 1, 'evicted'], ['live2', 3, 'in_window'], ['live3', 3, 'in_window']])
    expect(places.get('live3')!.stored).toHaveLength(3)
  })
  it('marks an answer that was stopped', () => {
    const [question, answer] = [stored(8, 4, 'user', text('three')), { ...stored(9, 4, 'assistant', text('thi')), stopped: true }]
    const places = placesOf(toChat([...history, question, answer]), [...history, question, answer])
    expect(['m7', 'm8', 'm9'].map((id) => places.get(id)?.stopped)).toEqual([undefined, false, true])
    expect(places.get('m9')!.status).toBe('in_window')
  })
  it('skips turns that were not stored', () => {
    const chat = [...toChat(history), { id: 'failed', role: 'user', parts: text('three') } as ChatMessage]
    const places = placesOf(chat, history)
    expect(places.has('failed')).toBe(false)
    expect(places.get('m4')!.turn).toBe(3)
  })
})
