import { Check, ChevronRight, LoaderCircle, X } from 'lucide-react'
import { cx } from '@/components/ui'
import { useGraph } from '@/lib/queries'
import type { RunState, StepState } from '@/lib/runstate'
import type { Flow } from '@/lib/types'

/** The steps of a flow in one line, with what each is doing. */
export function StepStrip({ flow, state }: { flow: Flow; state: RunState }) {
  const nodes = useGraph(flow.id).data?.nodes ?? Object.keys(state.steps).map((id) => ({ id }))
  return (
    <ol aria-label="Steps" className="mt-3 flex flex-wrap items-center gap-y-1 text-[0.86rem]">
      {nodes.map((n, i) => (
        <li key={n.id} className="flex items-center">
          {i > 0 && <ChevronRight aria-hidden size={14} className="mx-0.5 text-dim" />}
          <StepChip id={n.id} step={state.steps[n.id]} />
        </li>
      ))}
    </ol>
  )
}

function StepChip({ id, step }: { id: string; step?: StepState }) {
  const running = (step?.running ?? 0) > 0
  const status = running ? 'running' : step?.failed ? 'failed' : step?.done ? 'done' : 'not started'
  return (
    <span className={cx('inline-flex items-center gap-1 rounded-full border px-2 py-0.5', running ? 'border-accent bg-accent-soft text-accent' : step?.failed ? 'border-bad text-bad' : step?.done ? 'border-accent/60' : 'border-line-strong/50 text-dim')}>
      {running && <LoaderCircle aria-hidden size={13} className="animate-spin" />}
      {!running && step?.failed ? <X aria-hidden size={13} /> : !running && step?.done ? <Check aria-hidden size={13} className="text-ok" /> : null}
      {id}
      <span className="sr-only">, {status}</span>
    </span>
  )
}
