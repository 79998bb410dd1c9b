import { useEffect, useRef, useState } from 'react'
import { asProblem, type Problem } from './problem'
import { emptyRun, reduceRun, type RunState } from './runstate'
import { readEvents } from './sse'

/** Follows the native events of a run. Without an id nothing is read. */
export function useRun(id: string | undefined | null): { state: RunState; problem?: Problem } {
  const [state, setState] = useState(emptyRun)
  const [problem, setProblem] = useState<Problem>()
  const frame = useRef(0)
  useEffect(() => {
    setState(emptyRun())
    setProblem(undefined)
    if (!id) return
    const abort = new AbortController()
    let current = emptyRun()
    const show = () => {
      frame.current = 0
      setState(current)
    }
    readEvents(`runs/${encodeURIComponent(id)}/events`, abort.signal, (event) => {
      const data = JSON.parse(event.data)
      current = reduceRun(current, { ...data, type: data.type ?? event.event, seq: data.seq })
      frame.current ||= requestAnimationFrame(show)
      return (data.type ?? event.event) === 'run.finished'
    }).catch((error) => setProblem(asProblem(error)))
    return () => {
      abort.abort()
      cancelAnimationFrame(frame.current)
      frame.current = 0
    }
  }, [id])
  return { state, problem }
}
