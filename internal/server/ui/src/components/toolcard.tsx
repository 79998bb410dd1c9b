import { Check, ChevronRight, CircleSlash, Hand, LoaderCircle, Wrench, X } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { duration, inline } from '@/lib/format'
import type { RunRequest } from '@/lib/types'
import { CodeBlock } from './code'
import { RequestAnswer, type Answer } from './request'
import { cx } from './ui'

interface ToolCardProps {
  name: string
  state: string
  input: unknown
  output: unknown
  error?: string
  denied?: boolean
  ms?: number
  request?: RunRequest
  onAnswer: (a: Answer) => Promise<void>
}

const json = (v: unknown) => (typeof v === 'string' ? v : JSON.stringify(v, null, 2))

/** A call of a tool: one line, which opens to its arguments and result. A call that needs approval is open. */
export function ToolCard({ name, state, input, output, error, denied, ms, request, onAnswer }: ToolCardProps) {
  const [chosen, setOpen] = useState<boolean>()
  const open = chosen ?? request !== undefined
  const { icon, text } = stateOf(state, request !== undefined, denied, error)
  return (
    <div className={cx('card overflow-hidden', request && 'border-warn')}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="flex w-full items-center gap-2 px-3 py-2 text-left hover:bg-panel">
        <ChevronRight aria-hidden size={15} className={cx('shrink-0 text-dim transition-transform', open && 'rotate-90')} />
        <Wrench aria-hidden size={14} className="shrink-0 text-dim" />
        <span className="min-w-0 flex-1 truncate font-mono text-[0.86rem] text-ink">
          {name}
          <span className="text-dim">({argumentLine(input)})</span>
        </span>
        <span className="flex shrink-0 items-center gap-1 text-[0.82rem] text-dim">
          {icon}
          {text}
          {ms !== undefined && ` · ${duration(ms)}`}
        </span>
      </button>
      {open && (
        <div className="flex flex-col gap-2.5 border-t p-3 text-ink">
          <CodeBlock text={json(input ?? {})} language="json" label="Arguments" />
          {output !== undefined && <CodeBlock text={json(output)} language="json" label="Result" />}
          {error && <p className="rounded-lg bg-bad-soft px-3 py-2 text-bad">{error}</p>}
          {request && <RequestAnswer request={request} onAnswer={onAnswer} />}
        </div>
      )}
    </div>
  )
}

function argumentLine(input: unknown): string {
  if (!input || typeof input !== 'object' || Array.isArray(input)) return inline(input)
  return Object.entries(input).map(([k, v]) => `${k}: ${inline(v)}`).join(', ')
}

function stateOf(state: string, waits: boolean, denied?: boolean, error?: string): { icon: ReactNode; text: string } {
  if (waits) return { icon: <Hand aria-hidden size={14} className="text-warn" />, text: 'needs your answer' }
  if (denied) return { icon: <CircleSlash aria-hidden size={14} />, text: 'denied' }
  if (error || state === 'output-error') return { icon: <X aria-hidden size={14} className="text-bad" />, text: 'failed' }
  if (state === 'output-available') return { icon: <Check aria-hidden size={14} className="text-ok" />, text: 'done' }
  return { icon: <LoaderCircle aria-hidden size={14} className="animate-spin" />, text: 'running' }
}
