import { Bot, Database, Layers, Search, Workflow, Wrench, type LucideIcon } from 'lucide-react'
import { useRef, type KeyboardEvent } from 'react'
import { cx } from '@/components/ui'
import { count, duration } from '@/lib/format'
import type { TraceLine } from '@/lib/trace'

const icons: Record<string, LucideIcon> = { flow: Workflow, step: Layers, model: Bot, tool: Wrench, embedding: Search, memory: Database }
const colors: Record<string, string> = { flow: 'bg-k-system', step: 'bg-accent', model: 'bg-k-summary', tool: 'bg-k-pinned', embedding: 'bg-k-retrieval', memory: 'bg-k-variables' }

interface WaterfallProps {
  lines: TraceLine[]
  selected?: string
  onSelect: (id: string) => void
}

/** One line a span, with a bar at its time in the run. */
export function Waterfall({ lines, selected, onSelect }: WaterfallProps) {
  const list = useRef<HTMLOListElement>(null)
  const move = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    if (!step) return
    e.preventDefault()
    const at = lines.findIndex((l) => l.span.id === selected)
    const next = lines[Math.min(lines.length - 1, Math.max(0, at + step))]
    onSelect(next.span.id)
    list.current?.querySelectorAll('button')[lines.indexOf(next)]?.focus()
  }
  const whole = Math.max(...lines.map((l) => l.start + l.ms))
  return (
    <div className="card overflow-hidden">
      <div aria-hidden className="grid grid-cols-[8.5rem_1fr_4rem] gap-3 border-b sm:grid-cols-[minmax(9rem,15rem)_1fr_5.5rem] bg-panel px-3 py-1 text-[0.78rem] text-dim">
        <span>Span</span>
        <span className="flex justify-between"><span>0</span><span className="max-sm:hidden">{duration(whole / 2)}</span><span>{duration(whole)}</span></span>
        <span className="text-right">Time</span>
      </div>
      <ol ref={list} onKeyDown={move} aria-label="Spans">
        {lines.map((l) => (
          <li key={l.span.id} className="border-b last:border-0">
            <Line line={l} selected={l.span.id === selected} onSelect={() => onSelect(l.span.id)} />
          </li>
        ))}
      </ol>
    </div>
  )
}

function Line({ line: { span, depth, left, width, ms }, selected, onSelect }: { line: TraceLine; selected: boolean; onSelect: () => void }) {
  const Icon = icons[span.kind] ?? Layers
  const tokens = span.tokens ? `${count(span.tokens.input)} in, ${count(span.tokens.output)} out` : ''
  const place = left + width < 70 ? { left: `${left + width}%` } : left > 30 ? { right: `${100 - left}%` } : undefined
  return (
    <button type="button" aria-pressed={selected} tabIndex={selected ? 0 : -1} onClick={onSelect} className={cx('grid w-full grid-cols-[8.5rem_1fr_4rem] items-center sm:grid-cols-[minmax(9rem,15rem)_1fr_5.5rem] gap-3 px-3 py-1.5 text-left', selected ? 'bg-accent-soft' : 'hover:bg-panel')}>
      <span className="flex min-w-0 items-center gap-1.5" style={{ paddingLeft: `${Math.min(depth, 6) * 0.85}rem` }}>
        <Icon aria-hidden size={14} className={cx('shrink-0', span.error ? 'text-bad' : 'text-dim')} />
        <span className={cx('truncate text-[0.88rem]', span.error && 'text-bad', span.kind === 'step' && 'font-medium')}>{span.step && span.kind === 'step' ? span.step : span.name}</span>
        {span.error && <span className="text-[0.78rem] text-bad">failed</span>}
      </span>
      <span className="relative h-4">
        <span className={cx('absolute inset-y-0.5 min-w-[3px] rounded-sm', span.error ? 'bg-bad' : (colors[span.kind] ?? 'bg-accent'))} style={{ left: `${left}%`, width: `${width}%` }} />
        {tokens && place && (
          <span className="absolute top-1/2 -translate-y-1/2 px-1.5 text-[0.74rem] whitespace-nowrap text-dim max-md:hidden" style={place}>
            {tokens}
          </span>
        )}
      </span>
      <span className="text-right text-[0.86rem] tabular-nums">{duration(ms)}</span>
    </button>
  )
}
