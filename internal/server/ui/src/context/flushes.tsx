import { memo } from 'react'
import { clock, count, plural } from '@/lib/format'
import type { ContextState } from '@/lib/types'
import { sentence } from './explanation'

/** When messages left the window, newest first, and why. */
export const Flushes = memo(function Flushes({ context }: { context: ContextState }) {
  const flushes = [...(context.flushes ?? [])].reverse()
  return (
    <ol className="flex flex-col gap-2.5 border-l-2 border-line-strong pl-3">
      {flushes.map((f) => (
        <li key={`${f.turn}-${f.from}`} className="text-[0.88rem]">
          <p className="font-medium">
            {plural(f.messages, 'message')} before turn {f.turn}
          </p>
          <p className="text-dim">
            {clock(f.time)} · messages {f.from} to {f.to} · {count(f.tokens)} tokens
          </p>
          {f.reason && <p>{sentence(f.reason)}</p>}
        </li>
      ))}
    </ol>
  )
})
