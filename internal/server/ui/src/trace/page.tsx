import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { ProblemCard } from '@/components/problem'
import { Badge, Skeleton } from '@/components/ui'
import { getRun } from '@/lib/api'
import { clock, cost, count, duration } from '@/lib/format'
import { useTrace } from '@/lib/queries'
import { Link, pathOf } from '@/lib/router'
import { isOver } from '@/lib/runstate'
import { timeline, totals } from '@/lib/trace'
import { FlowHeader } from '@/shell/header'
import { useShell } from '@/shell/context'
import { SpanDetail } from './detail'
import { runTones } from './history'
import { Waterfall } from './waterfall'

/** What happened in a run: steps, calls of models and tools, with times, tokens and cost. */
export default function TracePage({ run }: { run: string }) {
  const { flows } = useShell()
  const info = useQuery({ queryKey: ['run', run], queryFn: () => getRun(run), refetchInterval: (q) => (q.state.data && !isOver(q.state.data.status) ? 1000 : false) })
  const trace = useTrace(run)
  const { refetch } = trace
  const updated = info.data?.updated
  useEffect(() => void refetch(), [updated, refetch])
  const lines = useMemo(() => timeline(trace.data?.spans ?? []), [trace.data])
  const [selected, setSelected] = useState<string>()
  const current = lines.find((l) => l.span.id === selected) ?? lines.find((l) => l.span.error) ?? lines.find((l) => l.span.kind === 'model') ?? lines[0]
  const flow = flows.find((f) => f.id === info.data?.flow)
  const error = info.error ?? trace.error
  return (
    <>
      <FlowHeader flow={flow} view="history" title="Trace" />
      <main id="main" tabIndex={-1} className="flex min-h-0 flex-1 flex-col overflow-auto outline-none lg:flex-row lg:overflow-hidden">
        <div className="min-w-0 flex-1 px-4 py-5 md:px-6 lg:overflow-auto" tabIndex={0} role="region" aria-label="Waterfall">
          <h1 className="sr-only">Trace of {run}</h1>
          {info.data && <Summary info={info.data} spans={trace.data?.spans ?? []} ms={lines[0] ? Math.max(...lines.map((l) => l.start + l.ms)) : undefined} />}
          {error && <ProblemCard error={error} title="The trace cannot be read" onRetry={() => (void info.refetch(), void trace.refetch())} />}
          {(info.isPending || trace.isPending) && !error && <Skeleton lines={6} className="mt-4" />}
          {lines.length > 0 && <Waterfall lines={lines} selected={current?.span.id} onSelect={setSelected} />}
          {trace.data && lines.length === 0 && <p className="text-dim">No spans were recorded for this run.</p>}
        </div>
        {current && (
          <aside aria-label="Span" className="shrink-0 border-t bg-panel lg:w-[30rem] lg:overflow-auto lg:border-t-0 lg:border-l" tabIndex={0}>
            <SpanDetail key={current.span.id} line={current} />
          </aside>
        )}
      </main>
    </>
  )
}

function Summary({ info, spans, ms }: { info: Awaited<ReturnType<typeof getRun>>; spans: Parameters<typeof totals>[0]; ms?: number }) {
  const sum = totals(spans)
  return (
    <div className="mb-4 flex flex-wrap items-center gap-x-4 gap-y-1">
      <Badge tone={runTones[info.status]}>{info.status}</Badge>
      <span className="text-dim">{clock(info.created)}</span>
      {ms !== undefined && <span className="font-semibold tabular-nums">{duration(ms)}</span>}
      {sum.input + sum.output > 0 && <span className="tabular-nums">{count(sum.input)} tokens in, {count(sum.output)} out</span>}
      {sum.cost !== undefined && <span className="tabular-nums">{cost(sum.cost)}</span>}
      {info.session && <Link to={pathOf('chat', info.flow, info.session)} className="text-accent underline underline-offset-2">Conversation {info.session}</Link>}
    </div>
  )
}
