import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ProblemCard } from '@/components/problem'
import { Badge, Skeleton } from '@/components/ui'
import { getRuns } from '@/lib/api'
import { clock } from '@/lib/format'
import { useGraph } from '@/lib/queries'
import { isOver, type RunState } from '@/lib/runstate'
import type { Flow, Run } from '@/lib/types'
import { useRun } from '@/lib/userun'
import { FlowHeader } from '@/shell/header'
import { StepDetail } from './detail'
import { GraphView } from './view'

/** The steps of a flow. While a run goes on, the steps that work light up. */
export default function GraphPage({ flow }: { flow: Flow }) {
  const graph = useGraph(flow.id)
  const runs = useQuery({ queryKey: ['runs', flow.id, 'watch'], queryFn: () => getRuns(flow.id), refetchInterval: 2_000 })
  const [chosen, setChosen] = useState('')
  const [selected, setSelected] = useState<string>()
  const list = runs.data?.runs ?? []
  const run = list.find((r) => r.id === chosen) ?? list.find((r) => !isOver(r.status)) ?? list[0]
  const { state } = useRun(run?.id)
  const nodes = graph.data?.nodes ?? []
  useEffect(() => setSelected((s) => s ?? nodes[0]?.id), [nodes])
  const node = nodes.find((n) => n.id === selected)
  return (
    <>
      <FlowHeader flow={flow} view="graph" />
      <main id="main" tabIndex={-1} className="flex min-h-0 flex-1 flex-col overflow-auto outline-none lg:flex-row lg:overflow-hidden">
        <h1 className="sr-only">Steps of {flow.id}</h1>
        <div className="min-w-0 flex-1 lg:overflow-auto" tabIndex={0} role="region" aria-label="Graph">
          <RunBar runs={list} run={run} state={state} chosen={chosen} onChoose={setChosen} />
          {graph.error && <div className="p-5"><ProblemCard error={graph.error} onRetry={() => graph.refetch()} /></div>}
          {graph.isPending && <Skeleton lines={5} className="mx-auto mt-10 max-w-xs" />}
          {graph.data && <GraphView graph={graph.data} state={run ? state : undefined} selected={selected} onSelect={setSelected} />}
        </div>
        {node && (
          <aside aria-label="Step" className="shrink-0 border-t bg-panel lg:w-[26rem] lg:overflow-auto lg:border-t-0 lg:border-l">
            <StepDetail node={node} state={state.steps[node.id]} />
          </aside>
        )}
      </main>
    </>
  )
}

interface RunBarProps {
  runs: Run[]
  run?: Run
  state: RunState
  chosen: string
  onChoose: (id: string) => void
}
function RunBar({ runs, run, state, chosen, onChoose }: RunBarProps) {
  if (!run) return <p className="px-5 pt-4 text-dim">No run yet. Steps light up while the flow runs.</p>
  const live = !isOver(state.status)
  return (
    <div className="flex flex-wrap items-center gap-3 px-5 pt-4">
      <label className="flex items-center gap-2">
        <span className="text-dim">Run</span>
        <select className="field min-h-8 w-auto py-1" value={chosen} onChange={(e) => onChoose(e.target.value)}>
          <option value="">newest</option>
          {runs.map((r) => <option key={r.id} value={r.id}>{clock(r.created)}, {r.status}</option>)}
        </select>
      </label>
      <span role="status">
        <Badge tone={live ? 'accent' : state.status === 'succeeded' ? 'ok' : state.status === 'failed' ? 'bad' : 'neutral'}>
          {live && <span aria-hidden className="size-1.5 animate-pulse rounded-full bg-current" />}
          {live ? (state.status === 'waiting' ? 'waiting' : 'live') : state.status}
        </Badge>
      </span>
    </div>
  )
}
