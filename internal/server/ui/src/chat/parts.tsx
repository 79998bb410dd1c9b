import { ChevronRight, FileText } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { Markdown } from '@/components/markdown'
import { ToolCard } from '@/components/toolcard'
import { Values } from '@/components/values'
import { Dialog, Tip, cx } from '@/components/ui'
import { duration } from '@/lib/format'
import { isTool, textOf, toolName, type ChatMessage } from '@/lib/transcript'
import { FileChip } from './attachments'
import type { Conversation } from './conversation'
import { requestOf } from './list'

type Part = ChatMessage['parts'][number]
type Source = Extract<Part, { type: 'source-url' | 'source-document' }>

interface PartsProps {
  parts: ChatMessage['parts']
  streaming: boolean
  conv: Conversation
}

/** The parts of an answer in their order; sources follow at the end. */
export function Parts({ parts, streaming, conv }: PartsProps) {
  const sources = parts.filter((p): p is Source => p.type === 'source-url' || p.type === 'source-document')
  const lastText = parts.findLastIndex((p) => p.type === 'text')
  return (
    <>
      {parts.map((p, i) => (
        <PartView key={i} part={p} conv={conv} streaming={streaming && i === parts.length - 1} caret={streaming && i === lastText && i === parts.length - 1} hasText={textOf(parts).trim() !== ''} />
      ))}
      {sources.length > 0 && <Sources sources={sources} />}
    </>
  )
}

interface PartViewProps {
  part: Part
  conv: Conversation
  streaming: boolean
  caret: boolean
  hasText: boolean
}
function PartView({ part: p, conv, streaming, caret, hasText }: PartViewProps) {
  if (p.type === 'text') {
    return p.text ? <Markdown text={p.text} streaming={caret} /> : null
  }
  if (p.type === 'reasoning') return <Reasoning title={phaseOf(p) === 'commentary' ? 'Commentary' : 'Reasoning'} text={p.text} active={streaming && p.state !== 'done'} />
  if (p.type === 'file') return <FileChip part={p} large />
  if (isTool(p)) return <Tool part={p} conv={conv} />
  if (p.type.startsWith('data-') && !hasText) {
    const data = (p as { data?: unknown }).data
    const values = (data as { outputs?: unknown })?.outputs ?? data
    if (values && typeof values === 'object' && !Array.isArray(values)) return <Values values={values as Record<string, unknown>} />
  }
  return null
}

function Tool({ part, conv }: { part: Part; conv: Conversation }) {
  const p = part as unknown as { toolCallId: string; state: string; input?: unknown; output?: unknown; errorText?: string; approval?: { id: string; approved?: boolean; reason?: string } }
  const timing = conv.tools[p.toolCallId]
  const request = requestOf(part, conv) ?? (p.state === 'approval-requested' && p.approval ? { id: p.approval.id, kind: 'approval' as const, tool: toolName(part), arguments: (p.input ?? {}) as Record<string, unknown> } : undefined)
  return (
    <ToolCard
      name={toolName(part)}
      state={p.state}
      input={p.input}
      output={p.output}
      error={p.errorText}
      denied={p.approval?.approved === false || p.state === 'output-denied'}
      ms={timing?.start !== undefined && timing.end !== undefined ? timing.end - timing.start : undefined}
      request={request}
      onAnswer={conv.answer}
    />
  )
}

/** The phase that the server names for a part of reasoning. The protocol has no part for commentary. */
const phaseOf = (p: Part) => (p as { providerMetadata?: { qtype?: { phase?: string } } }).providerMetadata?.qtype?.phase

/** The reasoning or the commentary of the model, closed unless the user opens it. */
function Reasoning({ title, text, active }: { title: string; text: string; active: boolean }) {
  const [open, setOpen] = useState(false)
  const [ms, setMs] = useState<number>()
  const start = useRef<number>(undefined)
  useEffect(() => {
    if (active) start.current ??= performance.now()
    else if (start.current !== undefined) setMs((was) => was ?? performance.now() - start.current!)
  }, [active])
  if (!text.trim() && !active) return null
  return (
    <div>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="inline-flex items-center gap-1 rounded-md py-0.5 pr-1.5 text-dim hover:text-ink">
        <ChevronRight aria-hidden size={16} className={cx('transition-transform', open && 'rotate-90')} />
        {active ? <span className="animate-pulse">{title}…</span> : `${title}${ms === undefined ? '' : ` (${duration(ms)})`}`}
      </button>
      {open && (
        <div className="mt-1 ml-2 border-l-2 pl-3.5 text-[0.93rem] text-dim">
          <Markdown text={text} />
        </div>
      )}
    </div>
  )
}

interface Passage {
  number?: number
  heading?: string
  text?: string
}

/** The passage that a source cites, as the server describes it. */
function passageOf(s: Source): Passage {
  return ((s.providerMetadata as { qtype?: Passage } | undefined)?.qtype ?? {})
}

/** Numbered chips of the sources of an answer, with the numbers that it cites. A source that was cited twice has one chip. */
function Sources({ sources }: { sources: Source[] }) {
  const [shown, setShown] = useState<Source>()
  const unique = useMemo(() => [...new Map(sources.map((s) => [s.type === 'source-url' ? s.url : s.sourceId, s])).values()], [sources])
  const title = (s: Source) => s.title || (s.type === 'source-url' ? s.url : s.filename) || s.sourceId
  const chip = 'inline-flex max-w-64 items-center gap-1.5 rounded-full border bg-raised py-0.5 pr-2.5 pl-1 text-[0.83rem] hover:border-accent'
  const number = (i: number) => <span className="grid size-5 place-items-center rounded-full bg-accent-soft text-[0.74rem] font-semibold text-accent">{i + 1}</span>
  return (
    <>
      <ul aria-label="Sources" className="flex flex-wrap gap-1.5">
        {unique.map((s, i) => (
          <li key={i}>
            <Tip label={s.type === 'source-url' ? s.url : `${s.mediaType} ${s.filename ?? ''}`}>
              {s.type === 'source-url' ? (
                <a href={/^https?:/.test(s.url) ? s.url : undefined} target="_blank" rel="noopener noreferrer" className={chip}>
                  {number((passageOf(s).number ?? i + 1) - 1)} <span className="truncate">{title(s)}</span>
                </a>
              ) : (
                <button type="button" className={chip} onClick={() => setShown(s)}>
                  {number((passageOf(s).number ?? i + 1) - 1)} <span className="truncate">{title(s)}</span>
                </button>
              )}
            </Tip>
          </li>
        ))}
      </ul>
      {shown?.type === 'source-document' && (
        <Dialog open onClose={() => setShown(undefined)} title={title(shown)}>
          <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 px-5 pb-5">
            <dt className="text-dim"><FileText aria-hidden size={15} className="inline" /> Source</dt>
            <dd className="break-all">{shown.sourceId}</dd>
            <dt className="text-dim">Type</dt>
            <dd>{shown.mediaType}</dd>
            {shown.filename && (<><dt className="text-dim">File</dt><dd>{shown.filename}</dd></>)}
            {passageOf(shown).heading && (<><dt className="text-dim">Section</dt><dd>{passageOf(shown).heading}</dd></>)}
            {passageOf(shown).text && (<><dt className="text-dim">Passage</dt><dd>{passageOf(shown).text}</dd></>)}
          </dl>
        </Dialog>
      )}
    </>
  )
}
