import { Check, LoaderCircle, X } from 'lucide-react'
import { count, duration } from '@/lib/format'
import type { RunState } from '@/lib/runstate'
import { Section } from './section'

/** What the steps of the running turn are doing. */
export function ThisTurn({ state }: { state: RunState }) {
  const steps = Object.entries(state.steps)
  if (steps.length === 0) return null
  return (
    <Section title="This turn">
      <ul className="flex flex-col gap-1 text-[0.88rem]">
        {steps.map(([id, s]) => (
          <li key={id} className="flex items-center gap-2">
            {s.running > 0 ? <LoaderCircle aria-hidden size={14} className="animate-spin text-accent" /> : s.failed > 0 ? <X aria-hidden size={14} className="text-bad" /> : <Check aria-hidden size={14} className="text-ok" />}
            <span className="min-w-0 flex-1 truncate">{id}</span>
            <span className="text-dim tabular-nums">{s.running > 0 ? 'running' : duration(s.ms)}</span>
          </li>
        ))}
      </ul>
      {state.tokens.input > 0 && (
        <p className="mt-1.5 text-[0.84rem] text-dim">
          {count(state.tokens.input)} in · {count(state.tokens.output)} out
        </p>
      )}
    </Section>
  )
}
