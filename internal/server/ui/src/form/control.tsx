import { Plus, Trash2, Upload } from 'lucide-react'
import { useId, useRef, useState, type ReactNode } from 'react'
import { Button, IconButton, cx } from '@/components/ui'
import { bytes } from '@/lib/format'
import { readDataURL } from '@/lib/download'
import { initialValue, type Field } from '@/lib/schema'

export interface ControlProps {
  field: Field
  path: string // JSON pointer
  value: unknown
  errors: Record<string, string>
  onChange: (value: unknown) => void
}

/** The control of a field with its label, description and error. */
export function FieldControl(props: ControlProps) {
  const { field, path, errors } = props
  const id = useId()
  const error = errors[path]
  const describedBy = cx(field.description && `${id}-d`, error && `${id}-e`) || undefined
  const group = field.control === 'list' || field.control === 'record'
  const body = <Control {...props} id={id} describedBy={describedBy} />
  const notes = (
    <>
      {field.description && <p id={`${id}-d`} className="mb-1 text-[0.85rem] text-dim">{field.description}</p>}
      {body}
      {error && <p id={`${id}-e`} className="mt-1 text-[0.87rem] text-bad">{error}</p>}
    </>
  )
  if (group) {
    return (
      <fieldset className="rounded-xl border px-3.5 pt-1 pb-3.5">
        <legend className="px-1"><Label field={field} /></legend>
        {notes}
      </fieldset>
    )
  }
  return (
    <div>
      <label htmlFor={id} className="mb-1 block"><Label field={field} /></label>
      {notes}
    </div>
  )
}

function Label({ field }: { field: Field }) {
  return (
    <span className="flex items-baseline gap-2">
      <span className="font-medium">{field.label}</span>
      <span className="text-[0.8rem] text-dim">
        {field.type}
        {field.optional && ', optional'}
      </span>
    </span>
  )
}

type InnerProps = ControlProps & { id: string; describedBy?: string }

const inputTypes: Record<string, string> = { date: 'date', time: 'time', datetime: 'datetime-local' }

function Control(props: InnerProps): ReactNode {
  const { field: f, value, onChange, id, errors, path, describedBy } = props
  const common = { id, 'aria-invalid': errors[path] ? true : undefined, 'aria-describedby': describedBy, 'aria-required': !f.optional }
  const text = value === undefined || value === null ? '' : String(value)
  const set = (t: string) => onChange(t === '' ? undefined : t)
  switch (f.control) {
    case 'textarea':
    case 'message':
      return <textarea {...common} className="field field-sizing-content max-h-96 min-h-20" rows={3} placeholder={f.placeholder} value={text} onChange={(e) => set(e.target.value)} />
    case 'int':
    case 'float':
      return <NumberInput {...props} common={common} />
    case 'boolean':
      return <BooleanInput {...props} common={common} />
    case 'date':
    case 'time':
      return <input {...common} className="field max-w-64" type={inputTypes[f.control]} step={f.control === 'time' ? 1 : undefined} value={text} onChange={(e) => set(f.control === 'time' && e.target.value.length === 5 ? `${e.target.value}:00` : e.target.value)} />
    case 'datetime':
      return <input {...common} className="field max-w-64" type="datetime-local" step={1} value={localTime(text)} onChange={(e) => onChange(e.target.value ? new Date(e.target.value).toISOString() : undefined)} />
    case 'enum':
      return (
        <select {...common} className="field max-w-96" value={text} onChange={(e) => onChange(f.options?.find((o) => String(o) === e.target.value))}>
          {(f.optional || value === undefined) && <option value="">{f.optional ? 'No value' : 'Choose'}</option>}
          {f.options?.map((o) => <option key={String(o)}>{String(o)}</option>)}
        </select>
      )
    case 'file':
      return <FileInput {...props} />
    case 'list':
      return <ListInput {...props} />
    case 'record':
      return <RecordInput {...props} />
    case 'json':
      return <JSONInput {...props} common={common} />
    default:
      return <input {...common} className="field" type="text" placeholder={f.placeholder} value={text} onChange={(e) => set(e.target.value)} />
  }
}

/** A time of the API in the local form of the browser's control. */
function localTime(iso: string): string {
  const d = new Date(iso)
  if (!iso || Number.isNaN(d.getTime())) return ''
  return new Date(d.getTime() - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

type Common = Record<string, unknown>

function NumberInput({ field: f, value, onChange, common }: InnerProps & { common: Common }) {
  const [text, setText] = useState(value === undefined || value === null ? '' : String(value))
  const number = Number(text)
  const shown = typeof value === 'number' && number !== value ? String(value) : value === undefined && !Number.isNaN(number) && text !== '' ? '' : text
  const change = (t: string) => {
    setText(t)
    onChange(t.trim() === '' ? undefined : Number.isNaN(Number(t)) ? t : Number(t))
  }
  return <input {...common} className="field max-w-56 tabular-nums" inputMode={f.control === 'int' ? 'numeric' : 'decimal'} placeholder={f.placeholder} value={shown} onChange={(e) => change(e.target.value)} />
}

function BooleanInput({ field: f, value, onChange, common }: InnerProps & { common: Common }) {
  if (f.optional) {
    return (
      <select {...common} className="field max-w-40" value={value === undefined || value === null ? '' : String(value)} onChange={(e) => onChange(e.target.value === '' ? undefined : e.target.value === 'true')}>
        <option value="">No value</option>
        <option value="true">Yes</option>
        <option value="false">No</option>
      </select>
    )
  }
  const on = value === true
  return (
    <button {...common} aria-required={undefined} type="button" role="switch" aria-checked={on} onClick={() => onChange(!on)} className={cx('relative h-6.5 w-11 rounded-full border transition-colors', on ? 'border-accent bg-accent' : 'border-line-strong bg-sunken')}>
      <span aria-hidden className={cx('absolute top-0.5 size-5 rounded-full transition-[left]', on ? 'left-5 bg-on-accent' : 'left-0.5 bg-line-strong')} />
    </button>
  )
}

function JSONInput({ value, onChange, common }: InnerProps & { common: Common }) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2))
  const change = (t: string) => {
    setText(t)
    try {
      onChange(t.trim() ? JSON.parse(t) : undefined)
    } catch {
      onChange(t)
    }
  }
  return <textarea {...common} className="field min-h-20 font-mono text-[0.88rem]" rows={3} placeholder="JSON" value={text} onChange={(e) => change(e.target.value)} />
}

function ListInput({ field: f, path, value, errors, onChange }: InnerProps) {
  const items = Array.isArray(value) ? value : []
  const item = f.item!
  const set = (i: number, v: unknown) => onChange(items.map((old, j) => (j === i ? v : old)))
  return (
    <div className="flex flex-col gap-2">
      {items.map((v, i) => (
        <div key={i} className="flex items-start gap-1.5">
          <div className="min-w-0 flex-1">
            <FieldControl field={{ ...item, label: `${i + 1}`, description: undefined }} path={`${path}/${i}`} value={v} errors={errors} onChange={(x) => set(i, x)} />
          </div>
          <IconButton small icon={Trash2} label={`Remove ${f.label} ${i + 1}`} className="mt-7" onClick={() => onChange(items.filter((_, j) => j !== i))} />
        </div>
      ))}
      <div>
        <Button small icon={Plus} onClick={() => onChange([...items, initialValue(item)])}>
          Add {item.control === 'record' ? 'an entry' : 'a value'}
        </Button>
      </div>
    </div>
  )
}

function RecordInput({ field: f, path, value, errors, onChange }: InnerProps) {
  const record = (value ?? {}) as Record<string, unknown>
  if (f.optional && value === undefined) return <Button small icon={Plus} onClick={() => onChange({})}>Set</Button>
  return (
    <div className="grid gap-3">
      {f.fields?.map((child) => (
        <FieldControl key={child.name} field={child} path={`${path}/${child.name}`} value={record[child.name]} errors={errors} onChange={(v) => onChange({ ...record, [child.name]: v })} />
      ))}
      {f.optional && <div><Button small onClick={() => onChange(undefined)}>Remove</Button></div>}
    </div>
  )
}

interface FileValue {
  filename: string
  mime: string
  bytes_base64: string
}

/** A file, sent as base64 with its name and media type. */
function FileInput({ field: f, value, onChange, id, describedBy }: InnerProps) {
  const picker = useRef<HTMLInputElement>(null)
  const [over, setOver] = useState(false)
  const file = value as FileValue | undefined
  const take = async (picked: File | undefined) => {
    if (!picked) return
    const url = await readDataURL(picked)
    onChange({ filename: picked.name, mime: picked.type || 'application/octet-stream', bytes_base64: url.slice(url.indexOf(',') + 1) })
  }
  return (
    <div
      onDragOver={(e) => (e.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={(e) => (e.preventDefault(), setOver(false), void take(e.dataTransfer.files[0]))}
      className={cx('rounded-xl border border-dashed p-3', over ? 'border-accent bg-accent-soft' : 'border-line-strong')}
    >
      {file ? (
        <div className="flex items-center gap-3">
          {file.mime.startsWith('image/') && <img src={`data:${file.mime};base64,${file.bytes_base64}`} alt="" className="max-h-24 max-w-40 rounded-lg border" />}
          <div className="min-w-0 flex-1">
            <p className="truncate font-medium">{file.filename}</p>
            <p className="text-[0.85rem] text-dim">{file.mime}, {bytes(Math.floor((file.bytes_base64.length * 3) / 4))}</p>
          </div>
          <IconButton small icon={Trash2} label={`Remove ${file.filename}`} onClick={() => onChange(undefined)} />
        </div>
      ) : (
        <div className="flex flex-wrap items-center gap-3">
          <Button small icon={Upload} onClick={() => picker.current?.click()}>Choose a file</Button>
          <span className="text-[0.87rem] text-dim">or drop it here{f.accept ? ` (${f.accept})` : ''}</span>
        </div>
      )}
      <input ref={picker} id={id} aria-describedby={describedBy} type="file" accept={f.accept || undefined} className="sr-only" tabIndex={-1} onChange={(e) => (void take(e.target.files?.[0]), (e.target.value = ''))} />
    </div>
  )
}
