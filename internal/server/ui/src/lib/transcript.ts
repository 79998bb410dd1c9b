import type { UIMessage } from 'ai'
import { inline } from './format'
import type { GivenFeedback, MessageStatus, StoredMessage } from './types'

/** What the server sends with messages of a stream. */
export interface MessageMetadata {
  span_id?: string
  trace_id?: string
  step_id?: string
  statusMessage?: string
  run_id?: string
  status?: string
}
export type ChatMessage = UIMessage<MessageMetadata>
type Part = ChatMessage['parts'][number]
type ToolPart = Part & { toolCallId: string; state: string; input?: unknown }

/** The text of a message, without its other parts. */
export const textOf = (parts: readonly Part[]): string =>
  parts.filter((p): p is Extract<Part, { type: 'text' }> => p.type === 'text').map((p) => p.text).join('')

/** All that a message contains, as text: calls of tools with their arguments, and names of files. */
export const contentOf = (parts: readonly Part[]): string =>
  (parts ?? [])
    .map((p) => {
      const part = p as { type: string; text?: string; input?: unknown; output?: unknown; filename?: string; mediaType?: string }
      if (part.text !== undefined) return part.text
      if (part.type.startsWith('tool-')) return `${part.type.slice(5)}(${JSON.stringify(part.input ?? {})})${part.output === undefined ? '' : ` → ${inline(part.output)}`}`
      return part.filename ?? part.mediaType ?? part.type
    })
    .join(' ')

export const isTool = (p: Part): p is ToolPart & Part => p.type === 'dynamic-tool' || p.type.startsWith('tool-')
export const toolName = (p: Part): string => ('toolName' in p ? String(p.toolName) : p.type.replace(/^tool-/, ''))

/** Stored messages as those of the chat: what the model and its tools wrote in a turn is one message. */
export function toChat(stored: StoredMessage[]): ChatMessage[] {
  const chat: ChatMessage[] = []
  let turn = -1
  for (const m of stored) {
    if (m.status === 'replaced' || m.role === 'system') continue
    const last = chat.at(-1)
    if (m.role !== 'user' && last?.role === 'assistant' && turn === m.turn) last.parts = mergeParts(last.parts, m.parts)
    else chat.push({ id: m.id, role: m.role === 'user' ? 'user' : 'assistant', parts: [...(m.parts ?? [])] })
    turn = m.turn
  }
  return chat
}

/** Appends parts; the result of a tool replaces the call that it belongs to. */
function mergeParts(parts: ChatMessage['parts'], more: ChatMessage['parts']): ChatMessage['parts'] {
  const merged = [...parts]
  for (const p of more ?? []) {
    const at = isTool(p) ? merged.findIndex((q) => isTool(q) && q.toolCallId === p.toolCallId) : -1
    if (at < 0) merged.push(p)
    else merged[at] = { ...merged[at], ...p, input: (p as ToolPart).input ?? (merged[at] as ToolPart).input } as Part
  }
  return merged
}

/** Where a message of the chat is stored, and whether the model still sees it. */
export interface Place {
  turn: number
  status: MessageStatus
  stored: StoredMessage[]
  stopped: boolean // the user stopped the answer
  feedback?: GivenFeedback
}

const rank: MessageStatus[] = ['in_window', 'summarized', 'evicted', 'replaced', 'stopped', 'failed']

/**
 * The places of the messages of a chat. User messages are matched from the end by their text,
 * because a turn that failed or was stopped is not stored.
 */
export function placesOf(chat: ChatMessage[], stored: StoredMessage[], given: GivenFeedback[] = []): Map<string, Place> {
  const kept = stored.filter((m) => m.status !== 'replaced' && m.role !== 'system')
  const users = kept.filter((m) => m.role === 'user')
  const places = new Map<string, Place>()
  let next = users.length - 1
  for (let i = chat.length - 1; i >= 0 && next >= 0; i--) {
    if (chat[i].role !== 'user' || textOf(chat[i].parts) !== textOf(users[next].parts)) continue
    const { turn } = users[next--]
    places.set(chat[i].id, placeOf(kept.filter((m) => m.turn === turn && m.role === 'user'), turn))
    const answer = kept.filter((m) => m.turn === turn && m.role !== 'user')
    if (chat[i + 1]?.role === 'assistant' && answer.length) places.set(chat[i + 1].id, { ...placeOf(answer, turn), feedback: given.find((f) => f.turn === turn) })
  }
  return places
}

function placeOf(stored: StoredMessage[], turn: number): Place {
  const status = stored.map((m) => m.status).sort((a, b) => rank.indexOf(b) - rank.indexOf(a))[0]
  return { turn, status, stored, stopped: stored.some((m) => m.stopped) }
}
