import { Check, LoaderCircle, X } from 'lucide-react'
import { useMemo, useState } from 'react'
import { Button, cx } from '@/components/ui'
import { inline } from '@/lib/format'
import type { RowState } from '@/lib/runstate'

const order = { failed: 0, running: 1, done: 2 }
const icons = {
  failed: <X aria-label="failed" size={15} className="text-bad" />,
  running: <LoaderCircle aria-label="running" size={15} className="animate-spin text-dim" />,
  done: <Check aria-label="done" size={15} className="text-ok" />,
}
const step = 100

/** The rows as they arrive, failed ones first. */
export function RowTable({ rows, inputs }: { rows: RowState[]; inputs: Record<string, unknown>[] }) {
  const [shown, setShown] = useState(step)
  const sorted = useMemo(() => [...rows].sort((a, b) => order[a.status] - order[b.status] || a.row - b.row), [rows])
  const inputNames = useMemo(() => Object.keys(inputs[0] ?? {}).slice(0, 2), [inputs])
  const outputNames = useMemo(() => [...new Set(rows.flatMap((r) => Object.keys(r.outputs ?? {})))].filter((n) => n !== 'metadata'), [rows])
  if (sorted.length === 0) return null
  return (
    <div>
      <div className="card max-h-[60vh] overflow-auto" tabIndex={0} role="region" aria-label="Rows">
        <table className="w-full text-[0.88rem]">
          <thead className="sticky top-0 bg-panel">
            <tr className="text-left">
              <th scope="col" className="px-3 py-2 font-semibold">Row</th>
              <th scope="col" className="py-2 font-semibold"><span className="sr-only">Status</span></th>
              {inputNames.map((n) => <th key={`i${n}`} scope="col" className="px-3 py-2 font-semibold">{n}</th>)}
              {(outputNames.length ? outputNames : ['result']).map((n) => <th key={n} scope="col" className="px-3 py-2 font-semibold text-accent">{n}</th>)}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, shown).map((r) => (
              <Row key={r.row} row={r} inputs={inputs[r.row] ?? {}} inputNames={inputNames} outputNames={outputNames} />
            ))}
          </tbody>
        </table>
      </div>
      {sorted.length > shown && <Button small className="mt-2" onClick={() => setShown(shown + 5 * step)}>Show more rows</Button>}
    </div>
  )
}

interface RowProps {
  row: RowState
  inputs: Record<string, unknown>
  inputNames: string[]
  outputNames: string[]
}
function Row({ row: r, inputs, inputNames, outputNames }: RowProps) {
  const cell = 'max-w-80 truncate px-3 py-1.5'
  return (
    <tr className={cx('border-t', r.status === 'failed' && 'bg-bad-soft')}>
      <td className="px-3 py-1.5 text-dim tabular-nums">{r.row + 1}</td>
      <td className="py-1.5">{icons[r.status]}</td>
      {inputNames.map((n) => <td key={n} className={cell} title={inline(inputs[n])}>{inline(inputs[n])}</td>)}
      {r.status === 'failed' ? (
        <td colSpan={Math.max(outputNames.length, 1)} className="px-3 py-1.5 text-bad">
          {r.error?.step_id && <span className="font-medium">{r.error.step_id}: </span>}
          {r.error?.error_message}
        </td>
      ) : outputNames.length === 0 || r.status === 'running' ? (
        <td colSpan={Math.max(outputNames.length, 1)} className={cx(cell, 'text-dim')}>{r.text || r.step}</td>
      ) : (
        outputNames.map((n) => <td key={n} className={cell} title={inline(r.outputs?.[n])}>{inline(r.outputs?.[n])}</td>)
      )}
    </tr>
  )
}
