import { useQuery } from '@tanstack/react-query'
import { Download, LayoutList, ListTree, Table2, Braces } from 'lucide-react'
import { useState } from 'react'
import { CodeBlock } from '@/components/code'
import { CopyButton } from '@/components/copy'
import { FeedbackBar } from '@/components/feedback'
import { ProblemCard } from '@/components/problem'
import { Values } from '@/components/values'
import { Button, IconButton, Skeleton } from '@/components/ui'
import { getRun } from '@/lib/api'
import { download } from '@/lib/download'
import { count, plural } from '@/lib/format'
import { Problem } from '@/lib/problem'
import { navigate, pathOf } from '@/lib/router'
import type { RunState } from '@/lib/runstate'
import { toCSV } from '@/lib/table'
import type { Flow, Output, RowError } from '@/lib/types'
import { useShell } from '@/shell/context'
import { ResultTable } from './table'

interface ResultProps {
  flow: Flow
  run: string
  state: RunState
  onRetry: () => void
}

const withoutMetadata = ({ metadata: _, ...rest }: Output) => rest

/** The outputs of a run, as cards, table or JSON, and its failed rows. */
export function Result({ flow, run, state, onRetry }: ResultProps) {
  const result = useQuery({ queryKey: ['run', run, 'result'], queryFn: () => getRun(run), staleTime: Infinity })
  const [chosen, setView] = useState<'cards' | 'table' | 'json'>()
  if (result.error) return <ProblemCard error={result.error} onRetry={() => result.refetch()} />
  if (!result.data) return <Skeleton lines={4} />
  const outputs = result.data.outputs ?? []
  const errors = result.data.errors ?? []
  const rows = outputs.map(withoutMetadata)
  const view = chosen ?? (rows.length > 5 ? 'table' : 'cards')
  const downloadCSV = () => download(`${flow.id}.csv`, toCSV(rows), 'text/csv')
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-1">
        <p className="mr-auto text-[0.9rem] text-dim">
          {state.status === 'cancelled' ? 'Cancelled, ' : ''}
          {plural(rows.length, 'result')}
          {errors.length > 0 && `, ${count(errors.length)} failed`}
          {state.tokens.input + state.tokens.output > 0 && ` · ${count(state.tokens.input)} in, ${count(state.tokens.output)} out`}
        </p>
        <IconButton small icon={LayoutList} label="Cards" aria-pressed={view === 'cards'} className={view === 'cards' ? 'bg-sunken text-ink' : ''} onClick={() => setView('cards')} />
        <IconButton small icon={Table2} label="Table" aria-pressed={view === 'table'} className={view === 'table' ? 'bg-sunken text-ink' : ''} onClick={() => setView('table')} />
        <IconButton small icon={Braces} label="JSON" aria-pressed={view === 'json'} className={view === 'json' ? 'bg-sunken text-ink' : ''} onClick={() => setView('json')} />
        <IconButton small icon={Download} label="Download CSV" onClick={downloadCSV} />
        <IconButton small icon={ListTree} label="Trace" onClick={() => navigate(pathOf('trace', run))} />
      </div>
      {state.status === 'failed' && errors.length === 0 && <ProblemCard error={new Problem(-1, '', 'The run failed', state.error ?? '')} onRetry={onRetry} />}
      {errors.map((e, i) => <FailedRow key={i} error={e} onRetry={rows.length === 0 && i === errors.length - 1 ? onRetry : undefined} />)}
      {view === 'cards' && outputs.map((o, i) => <OutputCard key={i} flow={flow} output={o} run={run} />)}
      {view === 'table' && rows.length > 0 && <ResultTable rows={rows} />}
      {view === 'json' && <CodeBlock text={JSON.stringify(rows.length === 1 ? rows[0] : rows, null, 2)} language="json" />}
    </div>
  )
}

function FailedRow({ error: e, onRetry }: { error: RowError; onRetry?: () => void }) {
  return (
    <div role="alert" className="rounded-xl border border-bad/50 bg-bad-soft p-3">
      <p className="font-semibold text-bad">{e.step_id ? `The step ${e.step_id} failed` : 'The row failed'}</p>
      <p className="break-words">{e.error_message}</p>
      {onRetry && <Button small className="mt-2" onClick={onRetry}>Retry</Button>}
    </div>
  )
}

function OutputCard({ flow, output, run }: { flow: Flow; output: Output; run: string }) {
  const values = withoutMetadata(output)
  const meta = output.metadata
  const { app } = useShell()
  return (
    <article className="card p-4">
      <Values values={values} />
      <div className="mt-3 flex flex-wrap items-center gap-1">
        <CopyButton text={JSON.stringify(values, null, 2)} label="Copy as JSON" />
        {flow.feedback && app.features?.feedback !== false && meta?.span_id && <FeedbackBar config={flow.feedback} span={meta.span_id} trace={meta.trace_id ?? ''} run={run} />}
      </div>
    </article>
  )
}
