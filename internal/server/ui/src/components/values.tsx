import { bytes, inline, messageText } from '@/lib/format'
import { mediaOf, sizeOf, type Media } from '@/lib/media'
import { CodeBlock } from './code'
import { Markdown } from './markdown'

/** A value of an output: text as Markdown, a list or a record as rows, other values as text. */
export function Value({ value, type }: { value: unknown; type?: string }) {
  if (value === null || value === undefined) return <span className="text-dim">no value</span>
  if (typeof value === 'string') {
    if (/^data:image\//.test(value)) return <img src={value} alt={type ?? 'Image'} className="max-h-80 rounded-lg border" />
    return <Markdown text={value} />
  }
  if (typeof value !== 'object') return <span className="font-mono">{String(value)}</span>
  const message = messageText(value)
  if (message !== undefined) return <Markdown text={message} />
  const media = mediaOf(value)
  if (media) return <MediaView media={media} />
  if (Array.isArray(value) && value.every((v) => typeof v !== 'object' || v === null)) {
    return value.length ? <ul className="list-disc pl-5">{value.map((v, i) => <li key={i}>{inline(v)}</li>)}</ul> : <span className="text-dim">empty list</span>
  }
  if (!Array.isArray(value) && Object.values(value).every((v) => typeof v !== 'object')) return <Values values={value as Record<string, unknown>} plain />
  return <CodeBlock text={JSON.stringify(value, null, 2)} language="json" />
}

/** An image, or the name of a file that can be downloaded. */
function MediaView({ media }: { media: Media }) {
  const url = `data:${media.mime};base64,${media.base64}`
  if (/^image\/(png|jpeg|gif|webp)$/.test(media.mime)) return <img src={url} alt={media.name} className="max-h-80 rounded-lg border" />
  return (
    <a href={url} download={media.name} className="text-accent underline underline-offset-2">
      {media.name} ({bytes(sizeOf(media))})
    </a>
  )
}

/** Names with their values. */
export function Values({ values, plain }: { values: Record<string, unknown>; plain?: boolean }) {
  return (
    <dl className={plain ? 'grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5' : 'flex flex-col gap-3'}>
      {Object.entries(values).map(([name, value]) => (
        <div key={name} className={plain ? 'contents' : undefined}>
          <dt className={plain ? 'text-dim' : 'eyebrow mb-0.5'}>{name}</dt>
          <dd className="min-w-0"><Value value={value} type={name} /></dd>
        </div>
      ))}
    </dl>
  )
}
