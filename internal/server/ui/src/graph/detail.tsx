import { CodeBlock } from '@/components/code'
import { Badge } from '@/components/ui'
import { count, duration } from '@/lib/format'
import type { StepState } from '@/lib/runstate'
import type { GraphNode } from '@/lib/types'

/** A step: its text in the document, what it reads and writes, and its numbers in the run. */
export function StepDetail({ node, state }: { node: GraphNode; state?: StepState }) {
  return (
    <div className="flex flex-col gap-4 p-5">
      <div>
        <h2 className="text-[1.05rem] font-semibold">{node.id}</h2>
        <p className="text-dim">{node.type}</p>
      </div>
      {state && (
        <dl className="grid grid-cols-4 gap-2 text-center">
          <Number label="running" value={count(state.running)} />
          <Number label="done" value={count(state.done)} />
          <Number label="failed" value={count(state.failed)} />
          <Number label="each" value={state.done + state.failed ? duration(state.ms / (state.done + state.failed)) : '–'} />
        </dl>
      )}
      {state?.error && <p className="rounded-lg bg-bad-soft px-3 py-2 text-bad">{state.error}</p>}
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5">
        <Names label="Reads" names={node.reads} />
        <Names label="Writes" names={node.writes} />
        <Names label="Uses" names={node.uses?.map((u) => `${u.kind} ${u.id}`)} />
      </dl>
      {node.yaml && <CodeBlock text={node.yaml} language="yaml" label={node.file ? `${node.file}:${node.line ?? 1}` : 'YAML'} />}
    </div>
  )
}

function Number({ label, value }: { label: string; value: string }) {
  return (
    <div className="card px-1 py-2">
      <dt className="text-[0.76rem] text-dim">{label}</dt>
      <dd className="font-semibold tabular-nums">{value}</dd>
    </div>
  )
}

function Names({ label, names }: { label: string; names?: string[] | null }) {
  if (!names?.length) return null
  return (
    <>
      <dt className="text-dim">{label}</dt>
      <dd className="flex flex-wrap gap-1">{names.map((n) => <Badge key={n}>{n}</Badge>)}</dd>
    </>
  )
}
