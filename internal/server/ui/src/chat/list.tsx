import { RotateCcw, Sparkles } from 'lucide-react'
import { useLayoutEffect, useState } from 'react'
import { ProblemCard } from '@/components/problem'
import { RequestCard } from '@/components/request'
import { Button } from '@/components/ui'
import { humanize } from '@/lib/format'
import { isTool, type ChatMessage } from '@/lib/transcript'
import type { Flow } from '@/lib/types'
import type { Conversation } from './conversation'
import { Message } from './message'

interface MessageListProps {
  flow: Flow
  conv: Conversation
  selected?: string
  onExplain: (messageID: string) => void
  onPrompt: (text: string) => void
}

/** All messages, the boundary of the window, requests, and the error of the last turn. */
export function MessageList({ flow, conv, selected, onExplain, onPrompt }: MessageListProps) {
  const { messages, error, status } = conv.chat
  const [editing, setEditing] = useState<string>()
  const [anchor, setAnchor] = useState<string>() // what was the first message before earlier ones were requested
  useLayoutEffect(() => {
    if (anchor && messages[0]?.id !== anchor) {
      document.querySelector(`[data-message="${CSS.escape(anchor)}"]`)?.scrollIntoView()
      setAnchor(undefined)
    }
  }, [anchor, messages])
  if (messages.length === 0) return <Welcome flow={flow} onPrompt={onPrompt} />
  const boundary = windowStart(messages, conv)
  const inCards = new Set(messages.flatMap((m) => m.parts.filter(isTool).map((p) => requestOf(p, conv)?.id)))
  const separate = conv.waiting.filter((r) => !inCards.has(r.id))
  const lastIndex = messages.length - 1
  return (
    <ol className="flex flex-col gap-4">
      {conv.more && (
        <li className="text-center">
          <Button small disabled={conv.busy} onClick={() => (setAnchor(messages[0].id), conv.showMore())}>Earlier messages</Button>
        </li>
      )}
      {messages.map((m, i) => (m.role === 'assistant' && i === lastIndex && status === 'error' && !hasContent(m) ? null : (
        <li key={m.id} data-message={m.id} className="scroll-mt-6">
          {i === boundary && <Boundary messages={messages.slice(0, i)} conv={conv} onExplain={onExplain} />}
          <Message
            flow={flow}
            conv={conv}
            message={m}
            index={i}
            last={i === lastIndex}
            selected={selected === m.id}
            editing={editing === m.id}
            onEdit={(open) => setEditing(open ? m.id : undefined)}
            place={conv.places.get(m.id)}
            onExplain={onExplain}
          />
        </li>
      )))}
      {conv.busy && messages[lastIndex].role === 'user' && (
        <li className="text-dim">
          <span className="caret" aria-label="The answer is being prepared" />
        </li>
      )}
      {separate.map((r) => (
        <li key={r.id}>
          <RequestCard request={r} onAnswer={conv.answer} />
        </li>
      ))}
      {status === 'ready' && messages[lastIndex].role === 'user' && conv.waiting.length === 0 && (
        <li className="flex items-center gap-3 text-dim">
          The answer was interrupted before its first word.
          <Button small icon={RotateCcw} onClick={() => void conv.retry(lastIndex)}>Retry</Button>
        </li>
      )}
      {conv.notUndone.length > 0 && (
        <li role="status" className="rounded-xl border border-line p-3.5">
          <p className="font-semibold">The conversation went back, but these calls of tools are not undone:</p>
          <ul className="mt-1.5 list-disc pl-5">
            {conv.notUndone.map((e, i) => (
              <li key={i} className="break-words font-mono text-[0.85rem]">{e.step ? `${e.tool}, by the step ${e.step} if it ran` : `${e.tool}(${e.arguments})`}</li>
            ))}
          </ul>
        </li>
      )}
      {conv.failure !== undefined && (
        <li>
          <ProblemCard error={conv.failure} />
        </li>
      )}
      {status === 'error' && error && (
        <li>
          <ProblemCard error={error} onRetry={() => void conv.retry(lastIndex)} />
        </li>
      )}
    </ol>
  )
}

/** Reports whether a message shows anything: an answer that failed at once does not. */
const hasContent = (m: ChatMessage) => m.parts.some((p) => (p.type === 'text' || p.type === 'reasoning' ? p.text !== '' : p.type !== 'step-start'))

/** The request that a tool call waits for: the one with its id, or with its tool and arguments. */
export function requestOf(part: ChatMessage['parts'][number], conv: Conversation) {
  const p = part as { approval?: { id: string }; toolCallId?: string; toolName?: string; type: string; input?: unknown; state?: string }
  if (p.state !== 'approval-requested' && p.state !== 'input-available') return undefined
  const name = p.toolName ?? p.type.replace(/^tool-/, '')
  return (
    conv.waiting.find((r) => r.id === p.approval?.id || (r.call !== undefined && r.call === p.toolCallId)) ??
    conv.waiting.find((r) => r.tool === name && JSON.stringify(r.arguments) === JSON.stringify(p.input))
  )
}

/** The index of the first message that the model still sees, -1 if it sees all. */
function windowStart(messages: ChatMessage[], conv: Conversation): number {
  const sees = (m: ChatMessage) => (conv.places.get(m.id)?.status ?? 'in_window') === 'in_window'
  const first = messages.findIndex(sees)
  return first > 0 ? first : -1
}

function Boundary({ messages, conv, onExplain }: { messages: ChatMessage[]; conv: Conversation; onExplain: (id: string) => void }) {
  const summarized = messages.some((m) => conv.places.get(m.id)?.status === 'summarized')
  return (
    <div className="mb-6 flex items-center gap-3">
      <span aria-hidden className="h-px flex-1 bg-line-strong" />
      <button type="button" onClick={() => onExplain(messages.at(-1)!.id)} className="rounded-full border border-line-strong bg-raised px-3 py-0.5 text-[0.82rem] hover:border-accent hover:text-accent">
        The model no longer sees the messages above{summarized ? ', only their summary' : ''}. Why?
      </button>
      <span aria-hidden className="h-px flex-1 bg-line-strong" />
    </div>
  )
}

function Welcome({ flow, onPrompt }: { flow: Flow; onPrompt: (text: string) => void }) {
  return (
    <div className="mx-auto max-w-xl pt-[8vh] text-center">
      <Sparkles aria-hidden size={26} className="mx-auto text-accent" />
      <h2 className="mt-3 text-xl font-semibold">{humanize(flow.id)}</h2>
      {flow.description && <p className="mt-1.5 text-dim">{flow.description}</p>}
      {!!flow.examples?.length && (
        <ul aria-label="Examples" className="mt-7 flex flex-col gap-2 text-left">
          {flow.examples.slice(0, 4).map((text) => (
            <li key={text}>
              <button type="button" onClick={() => onPrompt(text)} className="w-full rounded-xl border bg-raised px-4 py-2.5 text-left hover:border-accent">
                {text}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
