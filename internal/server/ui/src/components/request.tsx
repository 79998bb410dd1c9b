import { Hand } from 'lucide-react'
import { useMemo, useState } from 'react'
import { FieldControl } from '@/form/control'
import { checkValues, fieldsOf, initialValues, requestBody } from '@/lib/schema'
import type { RunRequest } from '@/lib/types'
import { CodeBlock } from './code'
import { ProblemCard } from './problem'
import { Button } from './ui'

export interface Answer {
  id: string
  approved?: boolean
  reason?: string
  result?: unknown
  error?: string
}
interface RequestProps {
  request: RunRequest
  onAnswer: (a: Answer) => Promise<void>
}

/** A request of a run that is not shown in the card of a tool call. */
export function RequestCard({ request: r, onAnswer, showRow }: RequestProps & { showRow?: boolean }) {
  return (
    <section aria-label={`Request: ${r.tool}`} className="card border-warn p-4">
      <p className="flex items-center gap-2 font-semibold">
        <Hand aria-hidden size={17} className="text-warn" />
        {r.kind === 'approval' ? `Allow ${r.tool}?` : r.description || r.tool}
        {showRow && r.row !== undefined && <span className="font-normal text-dim">row {r.row}</span>}
      </p>
      <div className="mt-3 flex flex-col gap-3">
        <CodeBlock text={JSON.stringify(r.arguments ?? {}, null, 2)} language="json" label={`Arguments of ${r.tool}`} />
        <RequestAnswer request={r} onAnswer={onAnswer} />
      </div>
    </section>
  )
}

/** The controls that answer a request: a decision, or the result of a tool that the user runs. */
export function RequestAnswer({ request, onAnswer }: RequestProps) {
  const [sent, setSent] = useState(false)
  const [error, setError] = useState<unknown>()
  const answer = async (a: Omit<Answer, 'id'>) => {
    setSent(true)
    setError(undefined)
    try {
      await onAnswer({ id: request.id, ...a })
    } catch (e) {
      setError(e)
      setSent(false)
    }
  }
  if (request.by && !request.by.includes('caller')) return <p>Waits for a decision of {request.by.join(' or ').replaceAll('role:', 'the role ')}.</p>
  return (
    <>
      {request.kind === 'approval' ? <Decision request={request} sent={sent} answer={answer} /> : <ResultForm request={request} sent={sent} answer={answer} />}
      {error !== undefined && <ProblemCard error={error} title="The answer was not accepted" />}
    </>
  )
}

interface AnswerProps {
  request: RunRequest
  sent: boolean
  answer: (a: Omit<Answer, 'id'>) => Promise<void>
}

function Decision({ request, sent, answer }: AnswerProps) {
  const [reason, setReason] = useState('')
  return (
    <div className="flex flex-col gap-2">
      {request.description && <p>{request.description}</p>}
      <label className="block">
        <span className="mb-1 block text-[0.85rem] text-dim">Reason, if you deny it (optional)</span>
        <input className="field" value={reason} onChange={(e) => setReason(e.target.value)} disabled={sent} />
      </label>
      <div className="flex gap-2">
        <Button variant="primary" disabled={sent} onClick={() => void answer({ approved: true })}>Approve</Button>
        <Button variant="danger" disabled={sent} onClick={() => void answer({ approved: false, ...(reason && { reason }) })}>Deny</Button>
      </div>
    </div>
  )
}

function ResultForm({ request, sent, answer }: AnswerProps) {
  const fields = useMemo(() => (request.schema?.properties ? fieldsOf(request.schema) : [{ name: 'result', label: 'Result', control: 'text' as const, type: 'text', optional: false }]), [request.schema])
  const [values, setValues] = useState(() => initialValues(fields))
  const [errors, setErrors] = useState<Record<string, string>>({})
  const submit = () => {
    const found = checkValues(fields, values)
    setErrors(found)
    if (Object.keys(found).length > 0) return
    void answer({ result: request.schema?.properties ? requestBody(fields, values) : values.result })
  }
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => (e.preventDefault(), submit())}>
      {fields.map((f) => (
        <FieldControl key={f.name} field={f} path={`/${f.name}`} value={values[f.name]} errors={errors} onChange={(v) => setValues({ ...values, [f.name]: v })} />
      ))}
      <div className="flex gap-2">
        <Button variant="primary" type="submit" disabled={sent}>Send the result</Button>
        <Button variant="danger" disabled={sent} onClick={() => void answer({ error: 'The user did not provide a result.' })}>Decline</Button>
      </div>
    </form>
  )
}
