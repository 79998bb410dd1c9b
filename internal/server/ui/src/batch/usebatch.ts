import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { answerRun, cancelRun, startRun } from '@/lib/api'
import { asProblem, type Problem } from '@/lib/problem'
import { emptyRun, reduceRun, type RowState, type RunState } from '@/lib/runstate'
import { readEvents } from '@/lib/sse'
import type { RunRequest } from '@/lib/types'
import { chunksOf, type BatchRow, type Chunk } from './chunks'

export type BatchStatus = 'idle' | 'running' | 'paused' | 'done' | 'cancelled' | 'failed'
export interface BatchState {
  status: BatchStatus
  total: number
  rows: Map<number, RowState>
  started: number
  ended?: number
  runs: Map<string, RunState> // by id
  left: number[] // rows that were not started when the batch was cancelled
  problem?: Problem
}

const idle = (): BatchState => ({ status: 'idle', total: 0, rows: new Map(), started: 0, runs: new Map(), left: [] })

// Requests at the same time.
const workers = 4

/** Runs the rows of a file in requests of many rows. Rows of one conversation keep their order. */
export function useBatch(flow: string) {
  const client = useQueryClient()
  const [state, setState] = useState(idle)
  const current = useRef(state)
  const queue = useRef<Chunk[]>([])
  const abort = useRef<AbortController>(undefined)
  const frame = useRef(0)

  const update = useCallback((change: Partial<BatchState>) => {
    current.current = { ...current.current, ...change }
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0
      setState(current.current)
    })
  }, [])
  useEffect(() => () => abort.current?.abort(), [])

  const follow = useCallback(
    async (run: string, chunk: Chunk) => {
      let state = emptyRun()
      await readEvents(`runs/${encodeURIComponent(run)}/events`, abort.current!.signal, (event) => {
        const data = JSON.parse(event.data)
        const next = reduceRun(state, { ...data, type: data.type ?? event.event })
        update({ rows: mergeRows(current.current.rows, state, next, chunk.rows), runs: new Map(current.current.runs).set(run, next) })
        state = next
        return next.status !== 'starting' && data.type === 'run.finished'
      })
      update({ rows: settle(current.current.rows, chunk.rows, state) })
      if (state.status === 'cancelled') update({ status: 'cancelled' })
    },
    [update],
  )

  const work = useCallback(async () => {
    update({ status: 'running', problem: undefined })
    const { signal } = abort.current!
    const worker = async () => {
      while (queue.current.length > 0 && current.current.status === 'running' && !signal.aborted) {
        const chunk = queue.current.shift()!
        try {
          const run = await startRetrying(flow, chunk, signal)
          await follow(run, chunk)
        } catch (error) {
          queue.current.unshift(chunk)
          throw error
        }
      }
    }
    const results = await Promise.allSettled(Array.from({ length: workers }, worker))
    if (signal.aborted) return
    const failure = results.find((r) => r.status === 'rejected')
    if (failure) update({ status: 'failed', problem: asProblem(failure.reason) })
    else if (current.current.status === 'running') update({ status: 'done' })
    if (current.current.status !== 'paused') update({ ended: Date.now() })
    void client.invalidateQueries({ queryKey: ['runs'] })
  }, [client, flow, follow, update])

  const start = (rows: BatchRow[], keep = false) => {
    abort.current?.abort()
    abort.current = new AbortController()
    queue.current = chunksOf(rows)
    const old = new Map(keep ? current.current.rows : [])
    rows.forEach((r) => old.delete(r.index))
    current.current = { ...idle(), rows: old, total: old.size + rows.length, started: Date.now(), status: 'running' }
    setState(current.current)
    void work()
  }
  const cancel = () => {
    const left = queue.current.flatMap((c) => c.rows.map((r) => r.index))
    queue.current = []
    update({ status: 'cancelled', ended: Date.now(), left })
    for (const [id, run] of current.current.runs) if (run.status === 'running' || run.status === 'waiting') void cancelRun(id)
  }
  const reset = () => {
    abort.current?.abort()
    queue.current = []
    current.current = idle()
    setState(current.current)
  }
  return { state, start, cancel, reset, pause: () => update({ status: 'paused' }), resume: () => void work(), waiting: queue.current.length }
}

/** The requests of all runs, each with how it is answered. */
export function openRequests(state: BatchState) {
  return [...state.runs].flatMap(([id, run]) => run.pending.map((request: RunRequest) => ({ request, answer: (a: Parameters<typeof answerRun>[1]) => answerRun(id, a).then(() => undefined) })))
}

/** Starts a run, again where the server is busy. */
async function startRetrying(flow: string, chunk: Chunk, signal: AbortSignal): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await startRun(flow, chunk.rows.map((r) => r.inputs), chunk.session)
    } catch (error) {
      const { status } = asProblem(error)
      if ((status !== 429 && status !== 503) || attempt >= 8 || signal.aborted) throw error
      await new Promise((resolve) => setTimeout(resolve, Math.min(500 * 2 ** attempt, 8000)))
    }
  }
}

/** Copies the rows that an event changed to the rows of the file. */
function mergeRows(rows: Map<number, RowState>, before: RunState, after: RunState, chunk: BatchRow[]): Map<number, RowState> {
  if (before.rows === after.rows) return rows
  const merged = new Map(rows)
  for (const row of Object.values(after.rows)) {
    const target = chunk[row.row - 1] // a run counts its rows from 1
    if (target && before.rows[row.row] !== row) merged.set(target.index, { ...row, row: target.index })
  }
  return merged
}

/** Marks the rows of an ended run that have no result. */
function settle(rows: Map<number, RowState>, chunk: BatchRow[], end: RunState): Map<number, RowState> {
  const settled = new Map(rows)
  for (const r of chunk) {
    const row = settled.get(r.index)
    if (row && row.status !== 'running') continue
    const reason = end.status === 'cancelled' ? 'The run was cancelled before this row.' : (end.error ?? 'The run ended without a result for this row.')
    settled.set(r.index, { row: r.index, status: 'failed', error: { row: r.index, step_id: '', error_message: reason } })
  }
  return settled
}
