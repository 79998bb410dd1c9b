import { CodeBlock } from '@/components/code'
import { Markdown } from '@/components/markdown'
import { Badge } from '@/components/ui'
import { cost, count, duration, inline, messageText } from '@/lib/format'
import type { TraceLine } from '@/lib/trace'

/** A span: its numbers, the prompt and the answer, or the input and output, and its attributes. */
export function SpanDetail({ line: { span, ms, start } }: { line: TraceLine }) {
  const attributes = Object.entries(span.attributes ?? {})
  const model = span.kind === 'model'
  return (
    <div className="flex flex-col gap-4 p-5">
      <div>
        <p className="flex items-center gap-2"><Badge tone={span.error ? 'bad' : 'accent'}>{span.kind}</Badge><span className="text-dim tabular-nums">{duration(ms)}, starts at {duration(start)}</span></p>
        <h2 className="mt-1 font-semibold break-words">{span.name}</h2>
      </div>
      {span.error && <p className="rounded-lg bg-bad-soft px-3 py-2 break-words text-bad">{span.error}</p>}
      {(span.tokens || typeof span.cost === 'number') && (
        <p className="tabular-nums">
          {span.tokens && `${count(span.tokens.input)} tokens in${span.tokens.cached ? ` (${count(span.tokens.cached)} cached)` : ''}, ${count(span.tokens.output)} out`}
          {typeof span.cost === 'number' && `${span.tokens ? ' · ' : ''}${cost(span.cost)}`}
        </p>
      )}
      <Payload title={model ? 'Prompt' : 'Input'} value={span.input} />
      <Payload title={model ? 'Answer' : 'Output'} value={span.output} />
      {attributes.length > 0 && (
        <section>
          <h3 className="eyebrow mb-1">Attributes</h3>
          <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 text-[0.85rem]">
            {attributes.map(([k, v]) => (
              <div key={k} className="contents">
                <dt className="break-all text-dim">{k}</dt>
                <dd className="break-words">{inline(v)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </div>
  )
}

interface PromptMessage {
  role: string
  content?: unknown
}
const isMessages = (v: unknown): v is PromptMessage[] => Array.isArray(v) && v.length > 0 && v.every((m) => m && typeof m === 'object' && typeof m.role === 'string')

function Payload({ title, value }: { title: string; value: unknown }) {
  const parsed = simplify(parse(value))
  if (parsed === undefined || parsed === null || parsed === '') return null
  return (
    <section>
      <h3 className="eyebrow mb-1">{title}</h3>
      {isMessages(parsed) ? (
        <ol className="flex flex-col gap-2">
          {parsed.map((m, i) => (
            <li key={i} className="card px-3 py-2">
              <p className="text-[0.8rem] font-medium text-dim">{m.role}</p>
              <p className="break-words whitespace-pre-wrap">{messageText(m) ?? inline(m.content ?? (m as { parts?: unknown }).parts)}</p>
            </li>
          ))}
        </ol>
      ) : typeof parsed === 'string' ? (
        <div className="card px-3 py-2"><Markdown text={parsed} /></div>
      ) : (
        <CodeBlock text={JSON.stringify(parsed, null, 2)} language="json" />
      )}
    </section>
  )
}

/** The messages of a request, or the text of an answer. */
function simplify(value: unknown): unknown {
  const messages = (value as { messages?: unknown })?.messages
  if (isMessages(messages)) return messages
  return messageText(value) || value
}

/** Attributes of spans are often JSON in a text. */
function parse(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}
