import { ChevronRight } from 'lucide-react'
import { memo, useMemo, useState } from 'react'
import { Badge, cx } from '@/components/ui'
import { count, plural } from '@/lib/format'
import { contentOf } from '@/lib/transcript'
import type { ContextBlock, ContextState, StoredMessage } from '@/lib/types'
import { kindOf } from './kinds'

/** The blocks of the next call in their order, with a line where flushed messages were. */
export const Blocks = memo(function Blocks({ context: c, messages }: { context: ContextState; messages: StoredMessage[] }) {
  const [all, setAll] = useState(false)
  const every = useMemo(() => withMessages(c.blocks ?? [], messages), [c.blocks, messages])
  const hidden = all ? 0 : Math.max(0, every.length - most)
  const blocks = hidden ? every.filter((b, i) => b.kind !== 'messages' || i >= every.length - most / 2) : every
  const total = Math.max(...blocks.map((b) => b.tokens), 1)
  const flushed = (c.flushes ?? []).reduce((n, f) => n + f.messages, 0)
  const firstMessage = blocks.findIndex((b) => b.kind === 'messages')
  return (
    <ol className="overflow-hidden rounded-xl border bg-raised">
      {blocks.map((b, i) => (
        <li key={i} className="border-b last:border-0">
          {i === firstMessage && flushed > 0 && (
            <p className="hatch border-b px-3 py-1 text-center text-[0.78rem]">
              <span className="rounded-full bg-raised px-2 text-dim">{plural(flushed, 'message')} flushed before</span>
            </p>
          )}
          <Block block={b} share={b.tokens / total} />
        </li>
      ))}
      {every.length > blocks.length && (
        <li className="border-t">
          <button type="button" onClick={() => setAll(true)} className="w-full px-3 py-1.5 text-[0.86rem] text-accent hover:bg-panel">
            Show {plural(every.length - blocks.length, 'older message')}
          </button>
        </li>
      )}
      {blocks.length === 0 && <li className="px-3 py-2 text-dim">Nothing yet.</li>}
    </ol>
  )
})

// More blocks are shown on request.
const most = 40

/** The blocks with one for each message, where the server has one for all of them. */
export function withMessages(blocks: ContextBlock[], messages: StoredMessage[]): ContextBlock[] {
  return blocks.flatMap((b) => {
    const sent = messages.filter((m) => m.status === 'in_window' && m.role !== 'system')
    if (b.kind !== 'messages' || b.role || b.text || sent.length === 0) return [b]
    return sent.map((m) => ({ kind: 'messages', role: m.role, tokens: m.tokens ?? 0, text: contentOf(m.parts) }))
  })
}

function Block({ block: b, share }: { block: ContextBlock; share: number }) {
  const [open, setOpen] = useState(false)
  const kind = kindOf(b.kind)
  const title = b.kind === 'messages' && b.role ? b.role : kind.label
  return (
    <div>
      <button type="button" aria-expanded={open} disabled={!b.text} onClick={() => setOpen(!open)} className="relative flex w-full items-center gap-2 px-2.5 py-1.5 text-left text-[0.86rem] hover:bg-panel">
        <span aria-hidden className={cx('h-5 w-1 shrink-0 rounded-full', kind.color)} />
        <span className="shrink-0 font-medium">{title}</span>
        <span className="min-w-0 flex-1 truncate text-dim">{b.text}</span>
        {b.cut && <Badge tone="warn">cut</Badge>}
        <span className="shrink-0 text-dim tabular-nums">{count(b.tokens)}</span>
        <ChevronRight aria-hidden size={14} className={cx('shrink-0 text-dim transition-transform', open && 'rotate-90', !b.text && 'invisible')} />
        <span aria-hidden className={cx('absolute bottom-0 left-0 h-px', kind.color)} style={{ width: `${share * 100}%` }} />
      </button>
      {open && (
        <div className="border-t bg-panel px-3 py-2 text-[0.86rem] break-words whitespace-pre-wrap">
          {b.text}
          {b.cut && <p className="mt-1 text-warn">This text was cut to fit its share of the window.</p>}
        </div>
      )}
    </div>
  )
}
