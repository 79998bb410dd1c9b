/** A file of an output, as the API writes it. */
export interface Media {
  base64: string
  mime: string
  name: string
}

// How the base64 of files begins.
const starts: [string, string, string][] = [
  ['iVBORw0KGgo', 'image/png', 'png'],
  ['/9j/', 'image/jpeg', 'jpg'],
  ['R0lGOD', 'image/gif', 'gif'],
  ['UklGR', 'image/webp', 'webp'],
  ['JVBERi0', 'application/pdf', 'pdf'],
]

/** The file that a value is, undefined for other values. Without a media type, the content shows it. */
export function mediaOf(value: unknown): Media | undefined {
  if (!value || typeof value !== 'object') return undefined
  const v = value as { base64?: unknown; bytes_base64?: unknown; mime?: unknown; mime_type?: unknown; filename?: unknown }
  const base64 = v.base64 ?? v.bytes_base64
  if (typeof base64 !== 'string') return undefined
  const known = starts.find(([start]) => base64.startsWith(start))
  const mime = String(v.mime ?? v.mime_type ?? known?.[1] ?? 'application/octet-stream')
  return { base64, mime, name: String(v.filename ?? `file.${known?.[2] ?? 'bin'}`) }
}

/** The size of the content in bytes. */
export const sizeOf = (m: Media) => Math.floor((m.base64.replace(/=+$/, '').length * 3) / 4)
