import { memo, useRef, type KeyboardEvent } from 'react'
import { cx } from '@/components/ui'
import { count } from '@/lib/format'
import type { MessageStatus, StoredMessage } from '@/lib/types'

const looks: Record<MessageStatus, string> = {
  in_window: 'bg-k-messages border-k-messages',
  evicted: 'hatch border-line-strong',
  summarized: 'border-k-summary border-dashed bg-k-summary/25',
  failed: 'border-bad bg-bad-soft',
  stopped: 'border-line-strong border-dotted',
  replaced: 'border-line border-dotted',
}
const names: Record<MessageStatus, string> = { in_window: 'in the window', evicted: 'flushed', summarized: 'in the summary', failed: 'failed', stopped: 'stopped', replaced: 'replaced' }

interface MessageMapProps {
  messages: StoredMessage[]
  owners: Map<string, string>
  selected?: string
  onSelect: (messageID: string | undefined) => void
}

/** One cell for each stored message: what the model sees is filled, what it no longer sees is hatched. */
export const MessageMap = memo(function MessageMap({ messages, owners, selected, onSelect }: MessageMapProps) {
  const list = useRef<HTMLDivElement>(null)
  const shown = messages.filter((m) => m.role !== 'system')
  if (shown.length === 0) return <p className="text-[0.88rem] text-dim">No messages are stored yet.</p>
  const most = Math.max(...shown.map((m) => m.tokens ?? 1), 1)
  const active = Math.max(0, shown.findIndex((m) => owners.get(m.id) === selected))
  const move = (e: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 }[e.key]
    if (!step) return
    e.preventDefault()
    const cells = [...(list.current?.querySelectorAll<HTMLElement>('button') ?? [])]
    const at = cells.indexOf(document.activeElement as HTMLElement)
    cells[Math.min(cells.length - 1, Math.max(0, at + step))]?.focus()
  }
  const statuses = [...new Set(shown.map((m) => m.status))]
  return (
    <>
      <div ref={list} role="group" aria-label="Messages, use the arrow keys" onKeyDown={move} className="flex flex-wrap items-end gap-[3px]">
        {shown.map((m, i) => {
          const owner = owners.get(m.id)
          return (
            <button
              key={m.id}
              type="button"
              tabIndex={i === active ? 0 : -1}
              aria-pressed={owner !== undefined && owner === selected}
              aria-label={`${m.role}, turn ${m.turn}, ${count(m.tokens)} tokens, ${names[m.status]}`}
              title={`${m.role} · turn ${m.turn} · ${count(m.tokens)} tokens · ${names[m.status]}`}
              onClick={() => onSelect(owner === selected ? undefined : owner)}
              className={cx('h-6 rounded-xs border', looks[m.status], m.role === 'user' ? 'opacity-100' : 'opacity-80', owner !== undefined && owner === selected && 'ring-2 ring-ink ring-offset-1 ring-offset-panel')}
              style={{ width: `${8 + 30 * Math.sqrt((m.tokens ?? 1) / most)}px` }}
            />
          )
        })}
      </div>
      <ul className="mt-2 flex flex-wrap gap-x-3 gap-y-0.5 text-[0.8rem] text-dim">
        {statuses.map((s) => (
          <li key={s} className="inline-flex items-center gap-1.5">
            <span aria-hidden className={cx('size-3 rounded-xs border', looks[s])} />
            {shown.filter((m) => m.status === s).length} {names[s]}
          </li>
        ))}
      </ul>
    </>
  )
})
