import { FieldControl } from '@/form/control'
import type { Field } from '@/lib/schema'

interface SessionInputsProps {
  fields: Field[]
  values: Record<string, unknown>
  onChange: (values: Record<string, unknown>) => void
}

/** The values that a conversation starts with. */
export function SessionInputs({ fields, values, onChange }: SessionInputsProps) {
  return (
    <fieldset className="card mb-2 grid gap-3 p-4 sm:grid-cols-2">
      <legend className="eyebrow px-1">For this conversation</legend>
      {fields.map((f) => (
        <FieldControl key={f.name} field={f} path={`/${f.name}`} value={values[f.name]} errors={{}} onChange={(v) => onChange({ ...values, [f.name]: v })} />
      ))}
    </fieldset>
  )
}
