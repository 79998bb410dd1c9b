import { useQueryClient } from '@tanstack/react-query'
import { Code2, Play, Square } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { Markdown } from '@/components/markdown'
import { ProblemCard } from '@/components/problem'
import { RequestCard } from '@/components/request'
import { Badge, Button } from '@/components/ui'
import { answerRun, cancelRun, startRun } from '@/lib/api'
import { Problem, asProblem } from '@/lib/problem'
import { isOver } from '@/lib/runstate'
import { checkValues, fieldsOf, initialValues, requestBody, type Field } from '@/lib/schema'
import type { Flow } from '@/lib/types'
import { useRun } from '@/lib/userun'
import { takePrompt } from '@/chat/draft'
import { FlowHeader } from '@/shell/header'
import { StepStrip } from '@/graph/strip'
import { FieldControl } from './control'
import { Result } from './result'
import { Snippets } from './snippets'

/** Values of a form by flow, so that they survive a visit to another page. */
const kept = new Map<string, Record<string, unknown>>()

/** The form of a flow and the result of its newest run. */
export default function FormPage({ flow }: { flow: Flow }) {
  const fields = useMemo(() => fieldsOf(flow.input_schema), [flow])
  const [values, setValues] = useState(() => firstValues(flow, fields))
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [code, setCode] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const run = useFormRun(flow)
  useEffect(() => void kept.set(flow.id, values), [flow.id, values])
  const submit = () => {
    const found = checkValues(fields, values)
    setErrors(found)
    if (Object.keys(found).length > 0) return setTimeout(() => form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus())
    void run.start(requestBody(fields, values), setErrors)
  }
  const change = (name: string, v: unknown) => {
    setValues((old) => ({ ...old, [name]: v }))
    setErrors((old) => Object.fromEntries(Object.entries(old).filter(([p]) => p !== `/${name}` && !p.startsWith(`/${name}/`))))
  }
  const example = (text: string) => setValues((old) => ({ ...old, ...exampleValues(fields, text) }))
  const invalid = Object.keys(errors).length
  return (
    <>
      <FlowHeader flow={flow} view="form" />
      <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-auto outline-none">
        <div className="mx-auto grid max-w-6xl grid-cols-[minmax(0,1fr)] gap-8 px-4 py-6 md:px-6 lg:grid-cols-[minmax(0,5fr)_minmax(0,6fr)]">
          <section aria-label="Inputs">
            <h1 className="text-xl font-semibold">{flow.id}</h1>
            {flow.description && <p className="mt-1 text-dim">{flow.description}</p>}
            <Examples examples={flow.examples ?? []} onChoose={example} />
            <form
              ref={form}
              className="mt-5 flex flex-col gap-4"
              noValidate
              onSubmit={(e) => (e.preventDefault(), submit())}
              onKeyDown={(e) => e.key === 'Enter' && (e.metaKey || e.ctrlKey) && (e.preventDefault(), submit())}
            >
              {fields.map((f) => (
                <FieldControl key={f.name} field={f} path={`/${f.name}`} value={values[f.name]} errors={errors} onChange={(v) => change(f.name, v)} />
              ))}
              {fields.length === 0 && <p className="text-dim">This flow has no inputs.</p>}
              {invalid > 0 && (
                <p role="alert" className="text-bad">
                  {invalid === 1 ? 'One value is' : `${invalid} values are`} missing or wrong.
                </p>
              )}
              <div className="sticky bottom-0 flex flex-wrap gap-2 bg-bg py-2">
                {run.running ? (
                  <Button icon={Square} onClick={run.cancel}>Cancel</Button>
                ) : (
                  <Button icon={Play} variant="primary" type="submit">Run</Button>
                )}
                <Button icon={Code2} aria-expanded={code} onClick={() => setCode(!code)}>Code</Button>
              </div>
            </form>
            {code && <Snippets flow={flow} body={requestBody(fields, values)} />}
          </section>
          <section aria-label="Result" aria-live="polite" aria-busy={run.running}>
            <ResultArea flow={flow} run={run} onRetry={submit} />
          </section>
        </div>
      </main>
    </>
  )
}

function Examples({ examples, onChoose }: { examples: string[]; onChoose: (text: string) => void }) {
  if (examples.length === 0) return null
  return (
    <div className="mt-3 flex flex-wrap items-center gap-1.5">
      <span className="text-[0.85rem] text-dim">Examples</span>
      {examples.slice(0, 5).map((text) => (
        <button key={text} type="button" onClick={() => onChoose(text)} className="max-w-full truncate rounded-full border border-line-strong/60 bg-raised px-2.5 py-0.5 text-[0.85rem] hover:border-accent">
          {text}
        </button>
      ))}
    </div>
  )
}

/** An example is a JSON object of inputs, or the text of the first text input. */
export function exampleValues(fields: Field[], text: string): Record<string, unknown> {
  if (text.trimStart().startsWith('{')) {
    try {
      return JSON.parse(text)
    } catch {
      // a text that starts with a brace
    }
  }
  const target = fields.find((f) => f.control === 'text' || f.control === 'textarea' || f.control === 'message')
  return target ? { [target.name]: text } : {}
}

function firstValues(flow: Flow, fields: Field[]): Record<string, unknown> {
  const prompt = takePrompt(flow.id)
  const values = kept.get(flow.id) ?? initialValues(fields)
  return prompt ? { ...values, ...exampleValues(fields, prompt) } : values
}

/** Starts runs of a form and follows the newest one. */
function useFormRun(flow: Flow) {
  const client = useQueryClient()
  const [id, setID] = useState<string>()
  const [starting, setStarting] = useState(false)
  const [error, setError] = useState<unknown>()
  const { state, problem } = useRun(id)
  const over = isOver(state.status)
  useEffect(() => {
    if (over) void client.invalidateQueries({ queryKey: ['runs'] })
  }, [over, client])
  const start = async (body: unknown, onFields: (errors: Record<string, string>) => void) => {
    setError(undefined)
    setStarting(true)
    try {
      setID(await startRun(flow.id, body))
    } catch (e) {
      const p = asProblem(e)
      if (p instanceof Problem && p.fields.length) onFields(Object.fromEntries(p.fields.map((f) => [f.pointer, f.detail])))
      setID(undefined)
      setError(e)
    }
    setStarting(false)
  }
  const running = starting || (id !== undefined && !over && !problem)
  return { id, state, error: error ?? problem, running, start, cancel: () => id && void cancelRun(id), answer: (a: Parameters<typeof answerRun>[1]) => answerRun(id!, a).then(() => undefined) }
}
export type FormRun = ReturnType<typeof useFormRun>

function ResultArea({ flow, run, onRetry }: { flow: Flow; run: FormRun; onRetry: () => void }) {
  const { state } = run
  if (run.error !== undefined) return <ProblemCard error={run.error} onRetry={onRetry} />
  if (run.id === undefined && !run.running) {
    return <div className="grid min-h-48 place-items-center rounded-2xl border border-dashed border-line-strong p-6 text-center text-dim">The result appears here.</div>
  }
  if (isOver(state.status)) return <Result flow={flow} run={run.id!} state={state} onRetry={onRetry} />
  return (
    <div className="flex flex-col gap-4">
      <Progress flow={flow} run={run} />
      {state.pending.map((r) => <RequestCard key={r.id} request={r} onAnswer={run.answer} />)}
    </div>
  )
}

/** The step in work and the text that it has written so far. */
function Progress({ flow, run }: { flow: Flow; run: FormRun }) {
  const row = Object.values(run.state.rows)[0]
  return (
    <div className="card p-4">
      <p className="flex items-center gap-2">
        <Badge tone={run.state.status === 'waiting' ? 'warn' : 'accent'}>
          <span aria-hidden className="size-1.5 animate-pulse rounded-full bg-current" />
          {run.state.status === 'waiting' ? 'waiting for you' : run.state.status}
        </Badge>
      </p>
      <StepStrip flow={flow} state={run.state} />
      {row?.text && (
        <div className="mt-3">
          <Markdown text={row.text} streaming />
        </div>
      )}
    </div>
  )
}
