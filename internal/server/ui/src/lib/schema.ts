import type { Schema } from './types'

/** The control that edits a value. */
export type Control =
  | 'text' | 'textarea' | 'int' | 'float' | 'boolean' | 'date' | 'time' | 'datetime'
  | 'enum' | 'list' | 'record' | 'file' | 'json' | 'message'

/** A field of a form, derived from a schema. */
export interface Field {
  name: string
  label: string
  control: Control
  type: string // the type of the language, for display
  optional: boolean
  description?: string
  placeholder?: string
  accept?: string
  options?: unknown[]
  default?: unknown
  minimum?: number
  maximum?: number
  item?: Field // of a list
  fields?: Field[] // of a record
}

const fileTypes: Record<string, string> = { image: 'image/*', audio: 'audio/*', video: 'video/*', file: '', bytes: '', thumbnail: 'image/*' }

/** Follows references and removes the null of an optional type. */
export function resolve(schema: Schema, root: Schema): { schema: Schema; nullable: boolean } {
  let s = schema
  let nullable = false
  for (let i = 0; i < 20; i++) {
    const ref = s.$ref?.match(/^#\/\$defs\/(.+)$/)?.[1]
    const target = ref ? root.$defs?.[decodeURIComponent(ref)] : undefined
    const variants = s.anyOf ?? s.oneOf
    if (target) s = { ...target, ...without(s, '$ref') }
    else if (s.allOf?.length === 1) s = { ...s.allOf[0], ...without(s, 'allOf') }
    else if (variants && variants.some((v) => v.type === 'null')) {
      nullable = true
      const rest = variants.filter((v) => v.type !== 'null')
      if (rest.length !== 1) return { schema: s, nullable }
      s = { ...rest[0], ...without(s, 'anyOf', 'oneOf') }
    } else break
  }
  if (Array.isArray(s.type) && s.type.includes('null')) {
    nullable = true
    const types = s.type.filter((t) => t !== 'null')
    s = { ...s, type: types.length === 1 ? types[0] : types }
  }
  return { schema: s, nullable }
}

function without(s: Schema, ...keys: (keyof Schema)[]): Schema {
  const copy = { ...s }
  for (const k of keys) delete copy[k]
  return copy
}

/** The fields of an object schema, in its order; inputs named in skip are left out. */
export function fieldsOf(schema: Schema, skip: string[] = []): Field[] {
  return objectFields(schema, schema, 0).filter((f) => !skip.includes(f.name))
}

function objectFields(schema: Schema, root: Schema, depth: number): Field[] {
  const required = new Set(schema.required ?? [])
  return Object.entries(schema.properties ?? {}).map(([name, s]) => fieldOf(name, s, root, !required.has(name), depth))
}

// The types of the language for those of JSON, where a schema does not name them.
const typeNames: Record<string, string> = { string: 'text', integer: 'int', number: 'float', boolean: 'boolean', object: 'record', array: 'list' }

function fieldOf(name: string, raw: Schema, root: Schema, optional: boolean, depth: number, given?: string): Field {
  const { schema: s, nullable } = resolve(raw, root)
  const type = (s.qtype_type ?? given ?? typeNames[String(s.type)] ?? s.title ?? 'any').replace(/\?$/, '')
  const ui = raw['x-ui'] ?? s['x-ui'] ?? {}
  const field: Field = {
    name,
    label: ui.label ?? name,
    type,
    control: depth > 6 ? 'json' : controlOf(s, type, ui.widget),
    optional: optional || nullable,
    description: ui.help ?? raw.description ?? s.description,
    placeholder: ui.placeholder,
    accept: ui.accept ?? fileTypes[type],
    options: s.enum,
    default: raw.default ?? s.default,
    minimum: s.minimum,
    maximum: s.maximum,
  }
  if (field.control === 'list') field.item = fieldOf(name, s.items ?? {}, root, false, depth + 1, /^list\[(.*)\]$/.exec(type)?.[1])
  if (field.control === 'record') field.fields = objectFields(s, root, depth + 1)
  return field
}

function controlOf(s: Schema, type: string, widget?: string): Control {
  if (s.enum) return 'enum'
  if (type === 'ChatMessage' || type === 'Message') return 'message'
  if (widget === 'file' || widget === 'file_upload' || type in fileTypes || s.format === 'binary' || s.format === 'byte') return 'file'
  if (type === 'date' || s.format === 'date') return 'date'
  if (type === 'time' || s.format === 'time') return 'time'
  if (type === 'datetime' || s.format === 'date-time') return 'datetime'
  if (s.type === 'array' || type.startsWith('list[')) return 'list'
  if (s.type === 'integer' || type === 'int') return 'int'
  if (s.type === 'number' || type === 'float') return 'float'
  if (s.type === 'boolean' || type === 'boolean') return 'boolean'
  if (s.type === 'object' && s.properties) return 'record'
  if (s.type === 'string' || type === 'text') return widget === 'textarea' ? 'textarea' : 'text'
  return 'json'
}

/** The first value of a field in an empty form. */
export function initialValue(f: Field): unknown {
  if (f.default !== undefined) return f.default
  if (f.optional) return undefined
  if (f.control === 'boolean') return false
  if (f.control === 'list') return []
  if (f.control === 'record') return initialValues(f.fields ?? [])
  return undefined
}

export const initialValues = (fields: Field[]): Record<string, unknown> =>
  Object.fromEntries(fields.map((f) => [f.name, initialValue(f)]).filter(([, v]) => v !== undefined))

/** The errors of values by JSON pointer, empty when all are valid. */
export function checkValues(fields: Field[], values: Record<string, unknown>, at = ''): Record<string, string> {
  const errors: Record<string, string> = {}
  for (const f of fields) Object.assign(errors, checkValue(f, values[f.name], `${at}/${f.name}`))
  return errors
}

const missing = (v: unknown) => v === undefined || v === null || v === ''

export function checkValue(f: Field, v: unknown, at: string): Record<string, string> {
  if (missing(v)) return f.optional ? {} : { [at]: 'A value is required.' }
  if (f.control === 'list') {
    if (!Array.isArray(v)) return { [at]: 'A list is required.' }
    return Object.assign({}, ...v.map((item, i) => checkValue(f.item!, item, `${at}/${i}`)))
  }
  if (f.control === 'record') return checkValues(f.fields ?? [], v as Record<string, unknown>, at)
  const problem = checkScalar(f, v)
  return problem ? { [at]: problem } : {}
}

function checkScalar(f: Field, v: unknown): string {
  if (f.control === 'int' && !(typeof v === 'number' && Number.isInteger(v))) return 'A whole number is required.'
  if (f.control === 'float' && !(typeof v === 'number' && Number.isFinite(v))) return 'A number is required.'
  if (f.control === 'boolean' && typeof v !== 'boolean') return 'true or false is required.'
  if (f.control === 'date' && !isDate(v)) return 'A date such as 2026-03-31 is required.'
  if (f.control === 'time' && !/^\d\d:\d\d(:\d\d(\.\d+)?)?/.test(String(v))) return 'A time such as 14:30 is required.'
  if (f.control === 'datetime' && Number.isNaN(Date.parse(String(v)))) return 'A date and time such as 2026-03-31T14:30:00Z is required.'
  if (f.control === 'enum' && f.options && !f.options.includes(v)) return `One of ${f.options.join(', ')} is required.`
  if (typeof v === 'number' && f.minimum !== undefined && v < f.minimum) return `At least ${f.minimum} is required.`
  if (typeof v === 'number' && f.maximum !== undefined && v > f.maximum) return `At most ${f.maximum} is allowed.`
  return ''
}

const isDate = (v: unknown) => /^\d{4}-\d\d-\d\d$/.test(String(v)) && !Number.isNaN(Date.parse(String(v)))

/** A cell of a file converted to the type of a field, or the reason why it cannot be. */
export function parseCell(f: Field, cell: unknown): { value?: unknown; error?: string } {
  if (typeof cell !== 'string') return verdict(f, cell)
  const text = cell.trim()
  if (text === '') return f.control === 'text' || f.control === 'textarea' ? verdict(f, f.optional ? undefined : cell) : verdict(f, undefined)
  switch (f.control) {
    case 'int':
    case 'float':
      return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? verdict(f, Number(text)) : { error: `${JSON.stringify(text)} is not a number.` }
    case 'boolean':
      if (/^(true|yes|1)$/i.test(text)) return { value: true }
      if (/^(false|no|0)$/i.test(text)) return { value: false }
      return { error: `${JSON.stringify(text)} is not true or false.` }
    case 'enum':
      return verdict(f, f.options?.find((o) => String(o) === text) ?? text)
    case 'list':
    case 'record':
    case 'json':
      return parseJSONCell(f, text)
    case 'text':
    case 'textarea':
    case 'message':
      return { value: cell }
    default:
      return verdict(f, text)
  }
}

function parseJSONCell(f: Field, text: string): { value?: unknown; error?: string } {
  try {
    return verdict(f, JSON.parse(text))
  } catch {
    if (f.control === 'list' && f.item?.control === 'text') return { value: text.split(/\s*[;|]\s*/) }
    return { error: `${JSON.stringify(text.slice(0, 40))} is not JSON.` }
  }
}

function verdict(f: Field, value: unknown): { value?: unknown; error?: string } {
  const error = Object.values(checkValue(f, value, ''))[0]
  return error ? { error } : { value }
}

/** Values without those that are not set, as the body of a request. */
export function requestBody(fields: Field[], values: Record<string, unknown>): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const f of fields) {
    const v = values[f.name]
    if (missing(v) && f.optional) continue
    body[f.name] = v
  }
  return body
}
