import { memo, useState } from 'react'
import { Button } from '@/components/ui'
import { clock, count, plural } from '@/lib/format'
import type { ContextState } from '@/lib/types'
import { sentence } from './explanation'

/** How many flushes are shown at first. */
const shownAtFirst = 10

/** When messages left the window, newest first, and why. */
export const Flushes = memo(function Flushes({ context }: { context: ContextState }) {
  const [all, setAll] = useState(false)
  const flushes = [...(context.flushes ?? [])].reverse()
  return (
    <>
      <ol className="flex flex-col gap-2.5 border-l-2 border-line-strong pl-3">
        {flushes.slice(0, all ? undefined : shownAtFirst).map((f) => (
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
      {!all && flushes.length > shownAtFirst && (
        <Button small onClick={() => setAll(true)}>
          Earlier flushes
        </Button>
      )}
    </>
  )
})
