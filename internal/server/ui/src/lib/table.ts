import Papa from 'papaparse'
import { inline } from './format'
import { mediaOf } from './media'
import { parseCell, type Field } from './schema'

/** Rows of a file, with the names of their columns. */
export interface Table {
  columns: string[]
  rows: Record<string, unknown>[]
}

/** Reads CSV, TSV, JSON lines or a JSON array; a line that cannot be read is an error. */
export function readTable(name: string, text: string): Table {
  const clean = text.replace(/^\uFEFF/, '')
  if (/\.(jsonl|ndjson)$/i.test(name)) return jsonTable(clean.split('\n').flatMap(parseLine))
  if (/\.json$/i.test(name) || /^\s*\[/.test(clean)) return jsonTable(JSON.parse(clean))
  if (/^\s*\{/.test(clean)) return jsonTable(clean.split('\n').flatMap(parseLine))
  const parsed = Papa.parse<Record<string, string>>(clean, { header: true, skipEmptyLines: 'greedy' })
  const bad = parsed.errors.find((e) => e.type !== 'Delimiter')
  if (bad) throw new Error(`line ${(bad.row ?? 0) + 2}: ${bad.message}`)
  return { columns: parsed.meta.fields ?? [], rows: parsed.data }
}

function parseLine(line: string, index: number): unknown[] {
  if (!line.trim()) return []
  try {
    return [JSON.parse(line)]
  } catch {
    throw new Error(`line ${index + 1} is not JSON`)
  }
}

function jsonTable(values: unknown): Table {
  if (!Array.isArray(values)) throw new Error('the file has no list of objects')
  const wrong = values.findIndex((v) => !v || typeof v !== 'object' || Array.isArray(v))
  if (wrong >= 0) throw new Error(`record ${wrong + 1} is not an object`)
  const rows = values as Record<string, unknown>[]
  return { columns: [...new Set(rows.flatMap((r) => Object.keys(r)))], rows }
}

/** The column of each input, by its name; empty for none. */
export type Mapping = Record<string, string>

const plain = (s: string) => s.toLowerCase().replace(/[^a-z0-9]/g, '')

/** The mapping by equal names; a single text input takes the only column. */
export function guessMapping(fields: Field[], columns: string[]): Mapping {
  const mapping: Mapping = {}
  for (const f of fields) mapping[f.name] = columns.find((c) => c === f.name) ?? columns.find((c) => plain(c) === plain(f.name)) ?? ''
  const open = fields.filter((f) => !mapping[f.name] && !f.optional)
  const free = columns.filter((c) => !Object.values(mapping).includes(c))
  if (open.length === 1 && free.length === 1) mapping[open[0].name] = free[0]
  return mapping
}

/** A cell that does not fit its input. row counts from 0. */
export interface CellError {
  row: number
  input: string
  error: string
}

/** Converts the rows to inputs and reports all cells that do not fit. */
export function mapRows(table: Table, fields: Field[], mapping: Mapping): { rows: Record<string, unknown>[]; errors: CellError[] } {
  const errors: CellError[] = []
  const rows = table.rows.map((row, i) => {
    const inputs: Record<string, unknown> = {}
    for (const f of fields) {
      const cell = mapping[f.name] ? row[mapping[f.name]] : undefined
      const { value, error } = parseCell(f, cell)
      if (error) errors.push({ row: i, input: f.name, error })
      else if (value !== undefined) inputs[f.name] = value
    }
    return inputs
  })
  return { rows, errors }
}

/** Rows as CSV; lists and objects are JSON. A cell that a spreadsheet would run as a formula gets an apostrophe. */
export function toCSV(rows: Record<string, unknown>[], columns?: string[]): string {
  const cell = (v: unknown) => (v === null || v === undefined ? '' : typeof v === 'object' ? (mediaOf(v)?.base64 ?? inline(v)) : String(v))
  const fields = columns ?? [...new Set(rows.flatMap((r) => Object.keys(r)))]
  return Papa.unparse({ fields, data: rows.map((r) => fields.map((f) => cell(r[f]))) }, { escapeFormulae: /^[=@\t\r]|^[+-](?!\d*\.?\d+(e[+-]?\d+)?$)/i })
}
