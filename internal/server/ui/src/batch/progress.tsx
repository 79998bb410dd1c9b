import { Download, Pause, Play, RotateCcw, X } from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { ProblemCard } from '@/components/problem'
import { RequestCard } from '@/components/request'
import { Badge, Button, Menu, type Tone } from '@/components/ui'
import { download } from '@/lib/download'
import { count, duration } from '@/lib/format'
import { navigate, pathOf } from '@/lib/router'
import { toCSV } from '@/lib/table'
import type { RowState } from '@/lib/runstate'
import type { Flow } from '@/lib/types'
import { RowTable } from './rows'
import { openRequests, type BatchState, type useBatch } from './usebatch'

interface ProgressProps {
  flow: Flow
  name: string
  inputs: Record<string, unknown>[]
  batch: ReturnType<typeof useBatch>
  onRerun: (rows: number[]) => void
  onClose: () => void
}

const tones: Record<BatchState['status'], Tone> = { idle: 'neutral', running: 'accent', paused: 'warn', done: 'ok', cancelled: 'neutral', failed: 'bad' }

/** The rows of a batch while they are run, and what can be done with them. */
export function Progress({ flow, name, inputs, batch, onRerun, onClose }: ProgressProps) {
  const s = batch.state
  const rows = useMemo(() => [...s.rows.values()], [s.rows])
  const failed = rows.filter((r) => r.status === 'failed')
  const done = rows.filter((r) => r.status === 'done').length
  const pending = openRequests(s)
  const tokens = [...s.runs.values()].reduce((sum, r) => ({ input: sum.input + r.tokens.input, output: sum.output + r.tokens.output }), { input: 0, output: 0 })
  const only = s.runs.size === 1 ? [...s.runs.keys()][0] : undefined
  const open = [...failed.map((r) => r.row), ...s.left]
  const active = s.status === 'running' || s.status === 'paused'
  return (
    <div className="flex flex-col gap-4">
      <div className="card p-4">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
          <Badge tone={pending.length ? 'warn' : tones[s.status]}>{pending.length ? 'waiting for you' : s.status}</Badge>
          <span className="font-medium">{name}</span>
          <span className="text-dim tabular-nums"><Rate state={s} finished={done + failed.length} /></span>
          <div className="ml-auto flex flex-wrap gap-2">
            {s.status === 'running' && batch.waiting > 0 && <Button small icon={Pause} onClick={batch.pause}>Pause</Button>}
            {(s.status === 'paused' || (s.status === 'failed' && batch.waiting > 0)) && <Button small icon={Play} onClick={batch.resume}>Resume</Button>}
            {active && <Button small icon={X} onClick={batch.cancel}>Cancel</Button>}
            {!active && open.length > 0 && <Button small icon={RotateCcw} onClick={() => onRerun(open)}>{s.left.length > 0 ? `Run the other ${count(open.length)} rows` : 'Run failed rows again'}</Button>}
            <Downloads flow={flow} inputs={inputs} rows={rows} />
            {!active && <Button small onClick={onClose}>Another file</Button>}
          </div>
        </div>
        <Bar total={s.total} done={done} failed={failed.length} />
        <p className="mt-2 text-[0.9rem] text-dim tabular-nums" role="status">
          {count(done)} done, {count(failed.length)} failed of {count(s.total)} rows
          {tokens.input + tokens.output > 0 && ` · ${count(tokens.input)} tokens in, ${count(tokens.output)} out`}
          {!active && s.runs.size > 0 && (
            <>
              {' · '}
              <button type="button" className="text-accent underline underline-offset-2" onClick={() => navigate(only ? pathOf('trace', only) : pathOf('history', flow.id))}>{only ? 'Trace' : `${count(s.runs.size)} runs`}</button>
            </>
          )}
        </p>
      </div>
      {s.problem && <ProblemCard error={s.problem} onRetry={batch.waiting > 0 ? batch.resume : undefined} />}
      {pending.map(({ request, answer }) => <RequestCard key={request.id} request={request} onAnswer={answer} showRow />)}
      <RowTable rows={rows} inputs={inputs} />
    </div>
  )
}

function Bar({ total, done, failed }: { total: number; done: number; failed: number }) {
  const share = (n: number) => `${(100 * n) / Math.max(total, 1)}%`
  return (
    <div role="progressbar" aria-label="Rows" aria-valuemin={0} aria-valuemax={total} aria-valuenow={done + failed} className="mt-3 flex h-2.5 overflow-hidden rounded-full bg-sunken">
      <div className="bg-bad transition-[width]" style={{ width: share(failed) }} />
      <div className="bg-accent transition-[width]" style={{ width: share(done) }} />
    </div>
  )
}

/** Rows a second, and the time that the others will take. */
function Rate({ state, finished }: { state: BatchState; finished: number }) {
  const [now, setNow] = useState(Date.now)
  const active = state.status === 'running'
  useEffect(() => {
    if (!active) return
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [active])
  const seconds = Math.max((state.ended ?? now) - state.started, 1) / 1000
  if (!active) return <>in {duration(seconds * 1000)}</>
  const rate = finished / seconds
  if (finished < 2) return <>starting</>
  return <>{rate.toFixed(1)} rows/s · {duration((1000 * (state.total - finished)) / rate)} left</>
}

function Downloads({ flow, inputs, rows }: { flow: Flow; inputs: Record<string, unknown>[]; rows: RowState[] }) {
  const sorted = [...rows].sort((a, b) => a.row - b.row)
  const record = (r: RowState) => ({ row: r.row + 1, ...inputs[r.row], ...r.outputs, error: r.error?.error_message ?? '' })
  const failed = sorted.filter((r) => r.status === 'failed')
  const items = [
    { label: 'All rows as CSV', onSelect: () => download(`${flow.id}-results.csv`, toCSV(sorted.map(record)), 'text/csv') },
    { label: 'All rows as JSON lines', onSelect: () => download(`${flow.id}-results.jsonl`, sorted.map((r) => `${JSON.stringify({ row: r.row + 1, inputs: inputs[r.row], outputs: r.outputs ?? null, error: r.error ?? null })}\n`).join(''), 'application/jsonl') },
  ]
  if (failed.length > 0) items.push({ label: 'Failed rows as CSV', onSelect: () => download(`${flow.id}-failed.csv`, toCSV(failed.map((r) => inputs[r.row])), 'text/csv') })
  return <Menu trigger={<Button small icon={Download} disabled={rows.length === 0}>Download</Button>} items={items} />
}
