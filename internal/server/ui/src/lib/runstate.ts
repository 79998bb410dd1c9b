import { millis } from './format'
import type { RowError, RunRequest, RunStatus } from './types'

/** A native event of a run. */
export type RunEvent = { type: string; seq?: number; time?: string } & Record<string, any>

export interface StepState {
  running: number // rows in work
  done: number
  failed: number
  ms: number // total time of the finished rows
  error?: string
}
export interface RowState {
  row: number // in a run from 1
  status: 'running' | 'done' | 'failed'
  step?: string
  text?: string
  outputs?: Record<string, unknown>
  error?: RowError
}
export interface ToolState {
  call: string
  tool: string
  step?: string
  start?: number
  end?: number
  error?: string
}
/** What is known of a run from its events so far. */
export interface RunState {
  run?: string
  status: RunStatus | 'starting'
  error?: string
  steps: Record<string, StepState>
  rows: Record<number, RowState>
  tools: Record<string, ToolState>
  pending: RunRequest[]
  tokens: { input: number; output: number }
  last: number // seq of the newest event
}

export const emptyRun = (): RunState => ({
  status: 'starting',
  steps: {},
  rows: {},
  tools: {},
  pending: [],
  tokens: { input: 0, output: 0 },
  last: -1,
})

const stepOf = (s: RunState, id: string): StepState => s.steps[id] ?? { running: 0, done: 0, failed: 0, ms: 0 }
const setStep = (s: RunState, id: string, step: StepState): RunState => ({ ...s, steps: { ...s.steps, [id]: step } })
const setRow = (s: RunState, row: number, change: Partial<RowState>): RunState => ({
  ...s,
  rows: { ...s.rows, [row]: { ...(s.rows[row] ?? { status: 'running' }), row, ...change } },
})
const timeOf = (e: RunEvent) => (e.time ? millis(e.time) : undefined)

const reducers: Record<string, (s: RunState, e: RunEvent) => RunState> = {
  'run.started': (s, e) => ({ ...s, run: e.run, status: 'running' }),
  'step.started': (s, e) => {
    const step = stepOf(s, e.step)
    return setRow(setStep(s, e.step, { ...step, running: step.running + 1 }), e.row, { step: e.step })
  },
  'step.finished': (s, e) => {
    const step = stepOf(s, e.step)
    return setStep(s, e.step, {
      running: Math.max(0, step.running - 1),
      done: step.done + (e.error ? 0 : 1),
      failed: step.failed + (e.error ? 1 : 0),
      ms: step.ms + (e.ms ?? 0),
      error: e.error ? errorText(e.error) : step.error,
    })
  },
  'text.delta': (s, e) => {
    const row = s.rows[e.row]
    const same = row?.step === e.step
    return setRow(s, e.row, { step: e.step, text: (same ? (row?.text ?? '') : '') + e.text })
  },
  'tool.called': (s, e) => ({ ...s, tools: { ...s.tools, [e.call]: { call: e.call, tool: e.tool, step: e.step, start: timeOf(e) } } }),
  'tool.returned': (s, e) => ({
    ...s,
    tools: { ...s.tools, [e.call]: { ...s.tools[e.call], call: e.call, tool: e.tool, end: timeOf(e), error: e.error ? errorText(e.error) : undefined } },
  }),
  'request.opened': (s, e) => ({ ...s, status: 'waiting', pending: [...s.pending.filter((p) => p.id !== e.request.id), e.request] }),
  'request.answered': (s, e) => {
    const pending = s.pending.filter((p) => p.id !== e.id)
    return { ...s, pending, status: pending.length ? 'waiting' : 'running' }
  },
  usage: (s, e) => ({ ...s, tokens: { input: s.tokens.input + (e.input ?? 0), output: s.tokens.output + (e.output ?? 0) } }),
  'row.finished': (s, e) =>
    e.error
      ? setRow(s, e.row, { status: 'failed', error: rowError(e.error, e.row) })
      : setRow(s, e.row, { status: 'done', outputs: e.outputs }),
  'run.finished': (s, e) => ({ ...s, status: e.status ?? 'succeeded', error: e.error ? errorText(e.error) : undefined, pending: [] }),
}

/** The state after an event. Events that were seen before have no effect. */
export function reduceRun(state: RunState, event: RunEvent): RunState {
  if (event.seq !== undefined && event.seq <= state.last) return state
  const reduce = reducers[event.type]
  const next = reduce ? reduce(state, event) : state
  return event.seq === undefined ? next : { ...next, last: event.seq }
}

/** The text of an error, which is text or an object. */
export function errorText(error: unknown): string {
  if (typeof error === 'string') return error
  const e = error as { error_message?: string; message?: string; detail?: string }
  return e?.error_message ?? e?.message ?? e?.detail ?? JSON.stringify(error)
}

function rowError(error: unknown, row: number): RowError {
  const e = typeof error === 'object' && error ? (error as Partial<RowError>) : {}
  return { row, step_id: e.step_id ?? '', error_message: errorText(error), exception_type: e.exception_type }
}

/** Reports whether a run has ended. */
export const isOver = (status: string | undefined) => status === 'succeeded' || status === 'failed' || status === 'cancelled'
