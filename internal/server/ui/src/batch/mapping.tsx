import { CircleAlert, CircleCheck, Play } from 'lucide-react'
import { Button, cx } from '@/components/ui'
import { count, inline, plural } from '@/lib/format'
import type { Field } from '@/lib/schema'
import type { CellError, Mapping, Table } from '@/lib/table'

interface MappingViewProps {
  file: { name: string; table: Table }
  fields: Field[]
  mapping: Mapping
  mapped: { errors: CellError[] }
  bad: Set<number>
  skip: boolean
  onSkip: (skip: boolean) => void
  onMapping: (m: Mapping) => void
  sessions: boolean // the flow has a memory
  session: string // the column of conversations, empty for none
  onSession: (column: string) => void
  onStart: () => void
  onClose: () => void
}

/** Which column each input comes from, and which rows do not fit. */
export function MappingView({ file, fields, mapping, mapped, bad, skip, onSkip, onMapping, sessions, session, onSession, onStart, onClose }: MappingViewProps) {
  const { table } = file
  const good = table.rows.length - bad.size
  const unmapped = fields.filter((f) => !f.optional && !mapping[f.name])
  const ready = unmapped.length === 0 && good > 0 && (bad.size === 0 || skip)
  return (
    <div className="flex flex-col gap-4">
      <p>
        <strong className="font-semibold">{file.name}</strong>{' '}
        <span className="text-dim">{plural(table.rows.length, 'row')}, {plural(table.columns.length, 'column')}</span>
      </p>
      <div className="card overflow-x-auto" tabIndex={0} role="region" aria-label="Columns of the inputs">
        <table className="w-full text-[0.92rem]">
          <thead>
            <tr className="border-b bg-panel text-left">
              {['Input', 'Column', 'First value', 'Check'].map((h) => <th key={h} scope="col" className={cx('px-4 py-2 font-semibold max-sm:px-2.5', h === 'First value' && 'max-sm:hidden')}>{h}</th>)}
            </tr>
          </thead>
          <tbody>
            {fields.map((f) => (
              <tr key={f.name} className="border-b align-top last:border-0">
                <th scope="row" className="px-4 py-2.5 text-left font-medium max-sm:px-2.5">
                  {f.name} <span className="font-normal text-dim">{f.type}{f.optional && ', optional'}</span>
                </th>
                <td className="px-4 py-1.5 max-sm:px-1">
                  <select aria-label={`Column of ${f.name}`} className="field min-w-28" value={mapping[f.name] ?? ''} onChange={(e) => onMapping({ ...mapping, [f.name]: e.target.value })}>
                    <option value="">No column</option>
                    {table.columns.map((c) => <option key={c}>{c}</option>)}
                  </select>
                </td>
                <td className="max-w-72 truncate px-4 max-sm:hidden py-2.5 text-dim">{mapping[f.name] ? inline(table.rows[0]?.[mapping[f.name]]) : ''}</td>
                <td className="px-4 py-2.5 max-sm:px-2.5"><Check field={f} mapped={!!mapping[f.name]} errors={mapped.errors.filter((e) => e.input === f.name)} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {sessions && (
        <label className="flex flex-wrap items-center gap-2">
          <span className="font-medium">Conversation</span>
          <select className="field w-auto" value={session} onChange={(e) => onSession(e.target.value)}>
            <option value="">Each row is a new one</option>
            {table.columns.map((c) => <option key={c} value={c}>Column {c}</option>)}
          </select>
          <span className="text-[0.88rem] text-dim">Rows of one conversation share the memory of the flow.</span>
        </label>
      )}
      {bad.size > 0 && unmapped.length === 0 && <Errors errors={mapped.errors} bad={bad.size} skip={skip} onSkip={onSkip} />}
      <div className="flex flex-wrap items-center gap-2">
        <Button variant="primary" icon={Play} disabled={!ready} onClick={onStart}>
          Start {plural(good, 'row')}
        </Button>
        <Button onClick={onClose}>Another file</Button>
        {unmapped.length > 0 && <p className="text-dim">Choose the column of {unmapped.map((f) => f.name).join(', ')}.</p>}
      </div>
    </div>
  )
}

function Check({ field, mapped, errors }: { field: Field; mapped: boolean; errors: CellError[] }) {
  if (!mapped) return <span className={field.optional ? 'text-dim' : 'text-bad'}>{field.optional ? 'not set' : 'needs a column'}</span>
  if (errors.length === 0) {
    return <span className="inline-flex items-center gap-1 text-ok"><CircleCheck aria-hidden size={15} /> all rows fit</span>
  }
  return <span className="inline-flex items-center gap-1 text-bad"><CircleAlert aria-hidden size={15} /> {plural(errors.length, 'row')} {errors.length === 1 ? 'does' : 'do'} not fit</span>
}

function Errors({ errors, bad, skip, onSkip }: { errors: CellError[]; bad: number; skip: boolean; onSkip: (s: boolean) => void }) {
  const most = 8
  return (
    <div className="rounded-xl border border-bad/50 bg-bad-soft p-4">
      <p className="font-semibold text-bad">{plural(bad, 'row')} cannot be run</p>
      <ul className="mt-1.5 text-[0.92rem]">
        {errors.slice(0, most).map((e) => (
          <li key={`${e.row}-${e.input}`}>Row {count(e.row + 1)}, {e.input}: {e.error}</li>
        ))}
        {errors.length > most && <li>and {count(errors.length - most)} more</li>}
      </ul>
      <label className="mt-2.5 flex items-center gap-2 font-medium">
        <input type="checkbox" checked={skip} onChange={(e) => onSkip(e.target.checked)} className="size-4 accent-accent" />
        Skip these rows
      </label>
    </div>
  )
}
