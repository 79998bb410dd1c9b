import { cost, count, duration } from '@/lib/format'
import { useTrace } from '@/lib/queries'
import { Link, pathOf } from '@/lib/router'
import { timeline, totals } from '@/lib/trace'
import { useShell } from '@/shell/context'
import { Section } from './section'

/** The steps of the newest run with their times. */
export function LastRun({ run }: { run: string }) {
  const { app } = useShell()
  const traces = app.features?.traces ?? true
  const trace = useTrace(run, traces)
  const spans = trace.data?.spans ?? []
  if (!traces || spans.length === 0) return null
  const lines = timeline(spans)
  const steps = lines.filter((l) => l.span.kind === 'step')
  const sum = totals(spans)
  return (
    <Section
      title="Last run"
      aside={
        <Link to={pathOf('trace', run)} className="text-[0.85rem] text-accent underline underline-offset-2">
          Trace
        </Link>
      }
    >
      <ul className="flex flex-col gap-1 text-[0.86rem]">
        {(steps.length ? steps : lines).slice(0, 8).map(({ span, left, width, ms }) => (
          <li key={span.id} className="grid grid-cols-[6.5rem_1fr_4rem] items-center gap-2">
            <span className="truncate">{span.step ?? span.name}</span>
            <span className="relative h-2 rounded-full bg-sunken">
              <span className={`absolute inset-y-0 min-w-1 rounded-full ${span.error ? 'bg-bad' : 'bg-accent'}`} style={{ left: `${left}%`, width: `${width}%` }} />
            </span>
            <span className="text-right text-dim tabular-nums">{duration(ms)}</span>
          </li>
        ))}
      </ul>
      <p className="mt-2 text-[0.84rem] text-dim">
        {count(sum.input)} in · {count(sum.output)} out{sum.cost !== undefined && ` · ${cost(sum.cost)}`}
      </p>
    </Section>
  )
}
