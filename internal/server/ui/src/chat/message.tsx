import { FlaskConical, GitFork, ListTree, Pencil, RotateCcw } from 'lucide-react'
import { useQuery } from '@tanstack/react-query'
import { memo, useState, type ComponentProps } from 'react'
import { CopyButton } from '@/components/copy'
import { FeedbackBar } from '@/components/feedback'
import { Badge, Button, IconButton, cx } from '@/components/ui'
import { getRun } from '@/lib/api'
import { navigate, pathOf } from '@/lib/router'
import { isTool, textOf, type ChatMessage, type Place } from '@/lib/transcript'
import type { Flow, MessageStatus } from '@/lib/types'
import { FileChip } from './attachments'
import { useShell } from '@/shell/context'
import type { Conversation } from './conversation'
import { Parts } from './parts'

interface MessageProps {
  flow: Flow
  conv: Conversation
  message: ChatMessage
  index: number
  last: boolean
  selected: boolean
  editing: boolean
  onEdit: (open: boolean) => void
  place?: Place
  onExplain: (messageID: string) => void
}

/** One message with its actions. While an answer is streamed, the other messages stay as they are. */
export const Message = memo(function Message(props: MessageProps) {
  const { message, selected, place } = props
  const gone = place !== undefined && place.status !== 'in_window'
  return (
    <article aria-label={message.role === 'user' ? 'You' : 'Assistant'} className={cx('group rounded-xl', selected && 'ring-2 ring-accent ring-offset-6 ring-offset-bg', gone && 'text-dim')}>
      {message.role === 'user' ? <UserMessage {...props} /> : <AssistantMessage {...props} />}
    </article>
  )
}, isSame)

/** Reports whether a message looks and acts as before. Only the last one, and those with calls of tools, show the state of the run. */
function isSame(a: MessageProps, b: MessageProps): boolean {
  if (a.last || b.last) return false
  const keys = ['flow', 'message', 'index', 'selected', 'editing', 'onExplain'] as const
  const same = keys.every((key) => a[key] === b[key]) && a.conv.busy === b.conv.busy
  const samePlace = a.place?.turn === b.place?.turn && a.place?.status === b.place?.status && a.place?.stopped === b.place?.stopped && a.place?.feedback === b.place?.feedback
  const sameTools = !b.message.parts.some(isTool) || (a.conv.waiting === b.conv.waiting && a.conv.tools === b.conv.tools)
  return same && samePlace && sameTools
}

const labels: Record<MessageStatus, string> = { in_window: 'seen by the model', evicted: 'not in the window', summarized: 'summarized', failed: 'failed', stopped: 'stopped', replaced: 'replaced' }

function StatusChip({ place, onExplain }: { place?: Place; onExplain: () => void }) {
  if (!place || place.status === 'in_window') return null
  return (
    <button type="button" onClick={onExplain} className="rounded-full" aria-label={`${labels[place.status]}. Show why`}>
      <Badge tone={place.status === 'failed' ? 'bad' : 'neutral'} className="border border-dashed border-line-strong hover:text-accent">
        {labels[place.status]}
      </Badge>
    </button>
  )
}

const hidden = 'opacity-0 transition-opacity group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-100'

function UserMessage({ conv, message, index, editing, onEdit, onExplain, place }: MessageProps) {
  const text = textOf(message.parts)
  const files = message.parts.filter((p) => p.type === 'file')
  if (editing) {
    return <Editor text={text} onCancel={() => onEdit(false)} onSave={(changed) => (onEdit(false), void conv.resend(index, changed, files))} />
  }
  return (
    <div className="flex flex-col items-end gap-1.5">
      {files.map((f, i) => (
        <FileChip key={i} part={f} large />
      ))}
      <div className="flex w-full flex-wrap-reverse items-center justify-end gap-1">
        <div className={cx('flex', hidden)}>
          <IconButton small icon={Pencil} label="Edit and resend" data-edit="" onClick={() => onEdit(true)} />
          <CopyButton text={text} />
        </div>
        <StatusChip place={place} onExplain={() => onExplain(message.id)} />
        {text && <div className="max-w-[85%] rounded-2xl rounded-br-md bg-sunken px-4 py-2.5 break-words whitespace-pre-wrap">{text}</div>}
      </div>
    </div>
  )
}

function Editor({ text, onCancel, onSave }: { text: string; onCancel: () => void; onSave: (text: string) => void }) {
  const [value, setValue] = useState(text)
  return (
    <form
      className="card border-accent p-2"
      onSubmit={(e) => (e.preventDefault(), value.trim() && onSave(value.trim()))}
      onKeyDown={(e) => {
        if (e.key === 'Escape') onCancel()
        if (e.key === 'Enter' && !e.shiftKey && !e.nativeEvent.isComposing) {
          e.preventDefault()
          if (value.trim()) onSave(value.trim())
        }
      }}
    >
      <textarea aria-label="Edit the message" autoFocus value={value} onChange={(e) => setValue(e.target.value)} className="field-sizing-content block max-h-[40vh] w-full resize-none bg-transparent px-2 py-1 outline-none" />
      <div className="flex flex-wrap items-center justify-end gap-2 pt-1">
        <p className="flex-1 px-2 text-[0.82rem] text-dim">The answers after this message leave the window.</p>
        <Button small onClick={onCancel}>Cancel</Button>
        <Button small type="submit" variant="primary">Send</Button>
      </div>
    </form>
  )
}

function AssistantMessage({ flow, conv, message, index, last, onExplain, place }: MessageProps) {
  const { app } = useShell()
  const streaming = last && conv.busy
  const text = textOf(message.parts)
  return (
    <div className="flex flex-col gap-2">
      <Parts parts={message.parts} streaming={streaming} conv={conv} />
      {streaming ? (
        <StatusLine conv={conv} message={message} />
      ) : (
        <div className="flex flex-wrap items-center gap-1">
          {place?.stopped && <Badge tone="neutral">stopped</Badge>}
          <StatusChip place={place} onExplain={() => onExplain(message.id)} />
          <div className={cx('flex items-center', !last && hidden)}>
            <IconButton small icon={RotateCcw} label="Retry" onClick={() => void conv.retry(index)} />
            {text && <CopyButton text={text} />}
            {place && <IconButton small icon={GitFork} label="Fork from here" onClick={() => void conv.fork(place.turn)} />}
            {place && app.features?.tests && <IconButton small icon={FlaskConical} label="Make a test of this" onClick={() => void conv.test(place.turn)} />}
            {last && conv.runID && <IconButton small icon={ListTree} label="Trace" onClick={() => navigate(pathOf('trace', conv.runID!))} />}
            <MessageFeedback flow={flow} message={message} run={message.metadata?.run_id ?? (last ? conv.runID : undefined)} given={place?.feedback} place={place && { session: conv.detail?.id, memory: conv.memory, turn: place.turn }} />
          </div>
        </div>
      )}
    </div>
  )
}

/** Feedback on an answer. Its span is in the stream, or in the outputs of its run. */
function MessageFeedback({ flow, message, run, ...rest }: { flow: Flow; message: ChatMessage; run?: string } & Pick<ComponentProps<typeof FeedbackBar>, 'given' | 'place'>) {
  const { app } = useShell()
  const wanted = flow.feedback !== null && app.features?.feedback !== false
  const inStream = message.metadata?.span_id
  const result = useQuery({ queryKey: ['run', run, 'result'], queryFn: () => getRun(run!), enabled: wanted && !inStream && !!run, staleTime: Infinity })
  const meta = inStream ? message.metadata : result.data?.outputs?.at(-1)?.metadata
  if (!wanted || !flow.feedback || (!meta?.span_id && !rest.place?.turn)) return null
  return <FeedbackBar config={flow.feedback} span={meta?.span_id} trace={meta?.trace_id} run={run ?? rest.given?.run} {...rest} />
}

const StatusLine = memo(function StatusLine({ message, conv }: { message: ChatMessage; conv: Conversation }) {
  const text = message.metadata?.statusMessage
  const waits = conv.waiting.length > 0
  if (!text && !waits) return null
  return <p className="text-[0.85rem] text-dim">{waits ? 'The run waits for your answer.' : text}</p>
})

