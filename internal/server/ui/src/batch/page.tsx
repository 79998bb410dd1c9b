import { useMemo, useState } from 'react'
import { fieldsOf } from '@/lib/schema'
import { guessMapping, mapRows, readTable, toCSV, type Mapping, type Table } from '@/lib/table'
import { download } from '@/lib/download'
import { inline } from '@/lib/format'
import { useGraph } from '@/lib/queries'
import type { Flow } from '@/lib/types'
import { FlowHeader } from '@/shell/header'
import { DropZone } from './dropzone'
import { MappingView } from './mapping'
import { Progress } from './progress'
import { useBatch } from './usebatch'

/** Runs a flow over the rows of a file. */
export default function BatchPage({ flow }: { flow: Flow }) {
  const fields = useMemo(() => fieldsOf(flow.input_schema), [flow])
  const [file, setFile] = useState<{ name: string; table: Table }>()
  const [error, setError] = useState('')
  const [mapping, setMapping] = useState<Mapping>({})
  const [skip, setSkip] = useState(false)
  const usesMemory = useGraph(flow.id).data?.nodes.some((n) => n.uses?.some((u) => u.kind === 'memory')) ?? false
  const [session, setSession] = useState('')
  const batch = useBatch(flow.id)
  const mapped = useMemo(() => (file ? mapRows(file.table, fields, mapping) : undefined), [file, fields, mapping])

  const open = async (picked: File) => {
    setError('')
    try {
      const table = readTable(picked.name, await picked.text())
      if (table.rows.length === 0) throw new Error('the file has no rows')
      setFile({ name: picked.name, table })
      setMapping(guessMapping(fields, table.columns))
      setSession(table.columns.find((c) => /^(session|conversation)(_?id)?$/i.test(c)) ?? '')
      setSkip(false)
      batch.reset()
    } catch (e) {
      setError(`${picked.name}: ${(e as Error).message}`)
    }
  }
  const close = () => {
    batch.reset()
    setFile(undefined)
  }
  const bad = useMemo(() => new Set(mapped?.errors.map((e) => e.row)), [mapped])
  const rowOf = (index: number) => ({ index, inputs: mapped!.rows[index], session: (session && inline(file!.table.rows[index][session])) || undefined, alone: usesMemory })
  const start = () => batch.start(mapped!.rows.map((_, index) => rowOf(index)).filter((r) => !bad.has(r.index)))
  const rerun = (indexes: number[]) => batch.start(indexes.map(rowOf), true)
  return (
    <>
      <FlowHeader flow={flow} view="batch" />
      <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-auto outline-none">
        <div className="mx-auto max-w-6xl px-4 py-6 md:px-6">
          <h1 className="text-xl font-semibold">Batch</h1>
          <p className="mt-1 mb-5 text-dim">Run {flow.id} once for each row of a file.</p>
          {!file && <DropZone error={error} onFile={(f) => void open(f)} onTemplate={() => download(`${flow.id}-template.csv`, toCSV([], fields.map((f) => f.name)), 'text/csv')} />}
          {file && mapped && batch.state.status === 'idle' && (
            <MappingView file={file} fields={fields} mapping={mapping} mapped={mapped} bad={bad} skip={skip} onSkip={setSkip} onMapping={setMapping} sessions={usesMemory} session={session} onSession={setSession} onStart={start} onClose={close} />
          )}
          {file && mapped && batch.state.status !== 'idle' && <Progress flow={flow} name={file.name} inputs={mapped.rows} batch={batch} onRerun={rerun} onClose={close} />}
        </div>
      </main>
    </>
  )
}
