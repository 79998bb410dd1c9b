import { cx } from '@/components/ui'
import { count } from '@/lib/format'
import type { ContextBlock, ContextState, MemoryState } from '@/lib/types'
import { kindOf, kinds } from './kinds'

/** How much of its limit the window uses, by kind of block. */
export function Gauge({ context: c, memory }: { context: ContextState; memory?: MemoryState }) {
  const all = sums(c.blocks ?? [], c.unit)
  // Some policies limit only the messages; what else is sent is listed, but not part of the gauge.
  const onlyMessages = all.find(([kind]) => kind === 'messages')?.[1] === c.used
  const byKind = onlyMessages ? all.filter(([kind]) => kind === 'messages') : all
  const besides = onlyMessages ? all.filter(([kind]) => kind !== 'messages') : []
  const share = c.limit > 0 ? c.used / c.limit : 0
  const over = share > 0.9
  return (
    <div className="pt-4">
      <p className="flex items-baseline gap-1.5">
        <span className="text-2xl font-semibold tracking-tight tabular-nums">{count(c.used)}</span>
        <span className="text-dim">{c.limit > 0 ? `of ${count(c.limit)} ${c.unit}` : c.unit}</span>
        {c.limit > 0 && <span className={cx('ml-auto text-[0.9rem] font-medium tabular-nums', over ? 'text-warn' : 'text-dim')}>{percent(share)}</span>}
      </p>
      <div role="meter" aria-label="Use of the window" aria-valuemin={0} aria-valuemax={c.limit || c.used} aria-valuenow={c.used} aria-valuetext={`${count(c.used)} of ${count(c.limit)} ${c.unit}`} className="mt-2 flex h-3.5 gap-px overflow-hidden rounded-full bg-sunken ring-1 ring-line">
        {byKind.map(([kind, n]) => (
          <div key={kind} className={kindOf(kind).color} style={{ width: `${(100 * n) / Math.max(c.limit, c.used, 1)}%` }} />
        ))}
      </div>
      {c.limit > c.used && (
        <p className="mt-2 text-[0.84rem]">
          {count(c.limit - c.used)} {c.unit} left until the oldest messages leave the window.
        </p>
      )}
      <ul className="mt-2 flex flex-wrap gap-x-3 gap-y-0.5 text-[0.8rem] text-dim">
        {byKind.map(([kind, n]) => (
          <li key={kind} className="inline-flex items-center gap-1.5">
            <span aria-hidden className={cx('size-2 rounded-xs', kindOf(kind).color)} />
            {kindOf(kind).plural} <span className="tabular-nums">{count(n)}</span>
          </li>
        ))}
      </ul>
      {besides.length > 0 && (
        <p className="mt-1 text-[0.8rem] text-dim">
          Sent in addition: {besides.map(([kind, n]) => `${kindOf(kind).plural} ${count(n)}`).join(', ')}
        </p>
      )}
      <p className="mt-1.5 text-[0.8rem] text-dim">
        {memory && (
          <>
            {memory.id}
            {memory.policy && ` (${memory.policy})`} · {memory.in_window} of {memory.messages} messages in the window
          </>
        )}
        {c.model && (
          <>
            <br />
            {c.model}
            {c.context_window ? `, context window ${count(c.context_window)}` : ''}
          </>
        )}
      </p>
    </div>
  )
}

const percent = (share: number) => (share > 0 && share < 0.01 ? '< 1 %' : `${Math.round(share * 100)} %`)

/** Units of the blocks by kind, in the order in which a call sends the kinds. */
function sums(blocks: ContextBlock[], unit: string): [string, number][] {
  const total = new Map<string, number>()
  for (const b of blocks) total.set(b.kind, (total.get(b.kind) ?? 0) + (unit === 'tokens' ? b.tokens : (b.units ?? 0)))
  const order = Object.keys(kinds)
  return [...total].filter(([, n]) => n > 0).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))
}
