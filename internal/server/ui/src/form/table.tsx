import { ArrowDown, ArrowUp } from 'lucide-react'
import { useMemo, useState } from 'react'
import { inline } from '@/lib/format'

// Longer tables are slow to show and no longer read.
const maxRows = 500

/** Rows as a table that can be searched and sorted. */
export function ResultTable({ rows }: { rows: Record<string, unknown>[] }) {
  const columns = useMemo(() => [...new Set(rows.flatMap((r) => Object.keys(r)))], [rows])
  const [q, setQ] = useState('')
  const [sort, setSort] = useState<{ column: string; up: boolean }>()
  const shown = useMemo(() => {
    const needle = q.toLowerCase()
    const found = needle ? rows.filter((r) => columns.some((c) => inline(r[c]).toLowerCase().includes(needle))) : [...rows]
    if (sort) found.sort((a, b) => compare(a[sort.column], b[sort.column]) * (sort.up ? 1 : -1))
    return found
  }, [rows, columns, q, sort])
  const toggle = (column: string) => setSort((s) => (s?.column === column ? { column, up: !s.up } : { column, up: true }))
  return (
    <div>
      {rows.length > 5 && <input type="search" aria-label="Search the rows" placeholder="Search" className="field mb-2 max-w-64" value={q} onChange={(e) => setQ(e.target.value)} />}
      <div className="card overflow-auto" tabIndex={0} role="region" aria-label="Results">
        <table className="w-full text-[0.9rem]">
          <thead>
            <tr className="border-b bg-panel text-left">
              {columns.map((c) => (
                <th key={c} scope="col" aria-sort={sort?.column === c ? (sort.up ? 'ascending' : 'descending') : undefined} className="p-0 font-semibold">
                  <button type="button" onClick={() => toggle(c)} className="flex w-full items-center gap-1 px-3 py-2 whitespace-nowrap">
                    {c} {sort?.column === c && (sort.up ? <ArrowUp aria-hidden size={13} /> : <ArrowDown aria-hidden size={13} />)}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, maxRows).map((r, i) => (
              <tr key={i} className="border-b align-top last:border-0">
                {columns.map((c) => (
                  <td key={c} className="max-w-96 px-3 py-2 break-words">{inline(r[c])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length > maxRows && <p className="mt-1 text-[0.85rem] text-dim">The first {maxRows} of {shown.length} rows. The download has all.</p>}
    </div>
  )
}

function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return inline(a).localeCompare(inline(b), undefined, { numeric: true })
}
