import { useInfiniteQuery } from '@tanstack/react-query'
import { ListTree } from 'lucide-react'
import { ProblemCard } from '@/components/problem'
import { Badge, Button, Skeleton, type Tone } from '@/components/ui'
import { cancelRun, getRuns } from '@/lib/api'
import { clock, count, duration } from '@/lib/format'
import { Link, pathOf } from '@/lib/router'
import { isOver } from '@/lib/runstate'
import type { Flow, Run, RunStatus } from '@/lib/types'
import { FlowHeader } from '@/shell/header'

export const runTones: Record<RunStatus, Tone> = { queued: 'neutral', running: 'accent', waiting: 'warn', succeeded: 'ok', failed: 'bad', cancelled: 'neutral' }

/** The runs of a flow, newest first. */
export default function HistoryPage({ flow }: { flow: Flow }) {
  const runs = useInfiniteQuery({
    queryKey: ['runs', flow.id, 'all'],
    queryFn: ({ pageParam }) => getRuns(flow.id, pageParam),
    initialPageParam: '',
    getNextPageParam: (last) => last.next || undefined,
    refetchInterval: 3_000,
  })
  const list = runs.data?.pages.flatMap((p) => p.runs ?? []) ?? []
  return (
    <>
      <FlowHeader flow={flow} view="history" />
      <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-auto outline-none">
        <div className="mx-auto max-w-4xl px-4 py-6 md:px-6">
          <h1 className="text-xl font-semibold">Runs</h1>
          <div className="mt-4">
            {runs.isPending && <Skeleton lines={5} />}
            {runs.error && <ProblemCard error={runs.error} onRetry={() => runs.refetch()} />}
            {runs.data && list.length === 0 && <p className="text-dim">No runs of this flow are kept. A server keeps the runs of the last day, as far as they fit, and forgets most of them when it stops.</p>}
            {list.length > 0 && <ul className="card divide-y">{list.map((r) => <RunItem key={r.id} run={r} flow={flow} onCancel={() => void cancelRun(r.id).then(() => runs.refetch())} />)}</ul>}
            {runs.hasNextPage && <Button className="mt-3" onClick={() => void runs.fetchNextPage()}>Show older runs</Button>}
          </div>
        </div>
      </main>
    </>
  )
}

function RunItem({ run: r, flow, onCancel }: { run: Run; flow: Flow; onCancel: () => void }) {
  const rows = r.rows
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5">
      <span className="w-22"><Badge tone={runTones[r.status]}>{r.status}</Badge></span>
      <Link to={pathOf('trace', r.id)} className="min-w-40 flex-1">
        <span className="flex items-center gap-1.5 font-medium"><ListTree aria-hidden size={15} className="text-dim" />{clock(r.created)}</span>
        <span className="block truncate text-[0.82rem] text-dim">{r.id}</span>
      </Link>
      {r.session && flow.interface_type === 'Conversational' && <Link to={pathOf('chat', flow.id, r.session)} className="max-w-48 truncate text-accent underline underline-offset-2">{r.session}</Link>}
      <span className="text-[0.88rem] text-dim tabular-nums">
        {rows ? `${count(rows.done)} done${rows.failed ? `, ${count(rows.failed)} failed` : ''}` : ''} · {duration(Date.parse(r.updated) - Date.parse(r.created))}
      </span>
      {!isOver(r.status) && <Button small onClick={onCancel}>Cancel</Button>}
    </li>
  )
}
