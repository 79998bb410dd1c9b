import { Eye, EyeOff, X, type LucideIcon } from 'lucide-react'
import { IconButton } from '@/components/ui'
import { clock, count, plural } from '@/lib/format'
import type { Place } from '@/lib/transcript'
import type { ContextState, Flush, MessageStatus } from '@/lib/types'

const headings: Record<MessageStatus, [LucideIcon, string]> = {
  in_window: [Eye, 'The model sees this message'],
  evicted: [EyeOff, 'The model no longer sees this message'],
  summarized: [EyeOff, 'The model sees only a summary of this message'],
  failed: [EyeOff, 'This turn failed'],
  stopped: [EyeOff, 'This turn was stopped before an answer'],
  replaced: [EyeOff, 'This message was replaced'],
}

interface ExplanationProps {
  place?: Place
  context: ContextState
  onClose: () => void
}

/** Why the model sees a message, or why it does not. */
export function Explanation({ place, context, onClose }: ExplanationProps) {
  if (!place) {
    return <Card icon={EyeOff} title="This message is not stored" onClose={onClose} lines={['Its turn was stopped or failed before its end, so the next call does not contain it.']} />
  }
  const [icon, title] = headings[place.status]
  return <Card icon={icon} title={title} onClose={onClose} lines={linesOf(place, context)} />
}

function Card({ icon: Icon, title, lines, onClose }: { icon: LucideIcon; title: string; lines: string[]; onClose: () => void }) {
  return (
    <div role="status" className="mt-3 rounded-xl border border-accent/50 bg-raised p-3 text-[0.9rem]">
      <div className="flex items-start gap-2">
        <Icon aria-hidden size={16} className="mt-0.5 shrink-0 text-accent" />
        <p className="flex-1 font-semibold">{title}</p>
        <IconButton small icon={X} label="Close the explanation" onClick={onClose} className="-mt-1 -mr-1 size-6" />
      </div>
      {lines.map((l) => (
        <p key={l} className="mt-1.5 pl-6">{l}</p>
      ))}
    </div>
  )
}

/** The flush that removed a message. */
export const flushOf = (seq: number, flushes: Flush[] | null) => flushes?.find((f) => f.from <= seq && seq <= f.to)

function linesOf(place: Place, c: ContextState): string[] {
  const tokens = place.stored.reduce((n, m) => n + (m.tokens ?? 0), 0)
  const size = `Turn ${place.turn}: ${plural(place.stored.length, 'message')} with ${count(tokens)} tokens.`
  const reason = place.stored.map((m) => m.reason).find(Boolean)
  if (place.status === 'in_window') return [size, `They are part of the ${count(c.used)} ${c.unit} that the next call sends.`]
  const flush = flushOf(place.stored[0]?.seq ?? -1, c.flushes)
  const lines = [size]
  if (flush) {
    lines.push(`Before turn ${flush.turn} (${clock(flush.time)}), messages ${flush.from} to ${flush.to} left the window: ${plural(flush.messages, 'message')}, ${count(flush.tokens)} tokens.`)
    if (flush.reason) lines.push(sentence(flush.reason))
  }
  if (reason && reason !== flush?.reason) lines.push(sentence(reason))
  if (place.status === 'summarized') lines.push('What matters of it is in the summary below.')
  if (place.status === 'evicted') lines.push('It stays in the history: you and exports see it.')
  return lines
}

export function sentence(text: string): string {
  const s = text.trim()
  return s.charAt(0).toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? '' : '.')
}
