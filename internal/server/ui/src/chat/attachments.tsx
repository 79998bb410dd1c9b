import type { FileUIPart } from 'ai'
import { FileText, X } from 'lucide-react'
import { useState } from 'react'
import { IconButton } from '@/components/ui'
import { readDataURL } from '@/lib/download'

// Larger files exceed the usual limit of a request once they are encoded.
const maxBytes = 20 * 1024 * 1024

/** Files that the next message will contain, as data URLs. */
export function useAttachments() {
  const [parts, setParts] = useState<FileUIPart[]>([])
  const [error, setError] = useState('')
  const add = (files: FileList | File[]) => {
    setError('')
    for (const file of Array.from(files)) {
      if (file.size > maxBytes) {
        setError(`${file.name} is larger than 20 MB.`)
        continue
      }
      readDataURL(file).then(
        (url) => setParts((p) => [...p, { type: 'file', mediaType: file.type || 'application/octet-stream', filename: file.name, url }]),
        (e: Error) => setError(e.message),
      )
    }
  }
  const remove = (index: number) => setParts((p) => p.filter((_, i) => i !== index))
  return { parts, error, add, remove, clear: () => setParts([]) }
}

export function AttachmentList({ files }: { files: ReturnType<typeof useAttachments> }) {
  if (!files.parts.length && !files.error) return null
  return (
    <div className="px-3 pt-3">
      {files.error && <p role="alert" className="mb-2 text-bad">{files.error}</p>}
      <ul aria-label="Attachments" className="flex flex-wrap gap-2">
        {files.parts.map((p, i) => (
          <li key={i} className="flex items-center gap-1 rounded-lg border bg-panel pr-0.5">
            <FileChip part={p} />
            <IconButton small icon={X} label={`Remove ${p.filename ?? 'file'}`} onClick={() => files.remove(i)} />
          </li>
        ))}
      </ul>
    </div>
  )
}

/** A file of a message: the image, or its name. */
export function FileChip({ part, large }: { part: { mediaType?: string; filename?: string; url?: string }; large?: boolean }) {
  const name = part.filename || part.mediaType || 'file'
  const local = /^(data|blob):/.test(part.url ?? '')
  if (local && part.mediaType?.startsWith('image/')) {
    return <img src={part.url} alt={name} className={large ? 'max-h-72 max-w-full rounded-lg border' : 'size-10 rounded-l-lg object-cover'} />
  }
  if (large && local && part.mediaType?.startsWith('audio/')) return <audio controls src={part.url} aria-label={name} />
  if (large && local && part.mediaType?.startsWith('video/')) return <video controls src={part.url} aria-label={name} className="max-h-72 rounded-lg" />
  return (
    <span className="inline-flex items-center gap-1.5 px-2 py-1.5 text-[0.88rem]">
      <FileText aria-hidden size={15} />
      {local || !part.url ? <span className="max-w-48 truncate">{name}</span> : <a href={part.url} target="_blank" rel="noopener noreferrer" className="max-w-48 truncate underline">{name}</a>}
    </span>
  )
}
