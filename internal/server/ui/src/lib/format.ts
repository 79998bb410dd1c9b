import { mediaOf, sizeOf } from './media'

const numbers = new Intl.NumberFormat('en-US')
export const count = (n: number | undefined | null) => numbers.format(Math.round(n ?? 0))

/** A number with the fitting form of a noun: "1 message", "2 messages". */
export const plural = (n: number, noun: string, many = `${noun}s`) => `${count(n)} ${n === 1 ? noun : many}`

/** A duration in milliseconds as text. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 0.005) return '0 ms'
  if (ms < 1) return `${ms.toFixed(2)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
}

export const cost = (usd: number) => (usd === 0 ? '$0' : usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`)

/** Milliseconds of an RFC 3339 time; fractions below a millisecond are kept. */
export function millis(time: string): number {
  const whole = Date.parse(time)
  const digits = /\.(\d+)/.exec(time)?.[1] ?? ''
  return digits.length > 3 ? whole + Number(`0.${digits.slice(3)}`) : whole
}

/** A past time relative to now. */
export function ago(time: string | undefined, now = Date.now()): string {
  if (!time) return ''
  const s = Math.max(0, (now - Date.parse(time)) / 1000)
  if (s < 60) return 'now'
  if (s < 3600) return `${Math.floor(s / 60)} min ago`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`
  return new Date(time).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })
}

const clockFormat = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' })
export const clock = (time: string) => clockFormat.format(new Date(time))

/** The heading of a list by day: Today, Yesterday, or a date. */
export function dayOf(time: string | undefined, now = new Date()): string {
  if (!time) return 'Earlier'
  const day = new Date(time)
  const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(day).setHours(0, 0, 0, 0)) / 86_400_000)
  if (days <= 0) return 'Today'
  if (days === 1) return 'Yesterday'
  if (days < 7) return 'This week'
  return day.toLocaleDateString(undefined, { month: 'long', year: 'numeric' })
}

/** A name of the document as a title: "support_inbox" is "Support inbox". */
export function humanize(id: string): string {
  const words = id.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/[_-]+/g, ' ').trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export const bytes = (n: number) => (n < 1024 ? `${n} B` : n < 1_048_576 ? `${(n / 1024).toFixed(1)} kB` : `${(n / 1_048_576).toFixed(1)} MB`)

/** The text of a chat message with blocks, undefined for any other value. */
export function messageText(value: unknown): string | undefined {
  const blocks = (value as { blocks?: unknown })?.blocks
  if (!Array.isArray(blocks)) return undefined
  return blocks.map((b: { type?: string; content?: unknown }) => (b.type === 'text' || typeof b.content !== 'string' ? inline(b.content) : `[${b.type}]`)).join('\n\n')
}

/** A value as one line of text. */
export function inline(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  const media = mediaOf(value)
  return media ? `${media.name} (${bytes(sizeOf(media))})` : (messageText(value) ?? JSON.stringify(value))
}

/** A new id for a conversation. It also works where the page is not a secure context. */
export function newID(prefix = 'c'): string {
  const random = crypto.getRandomValues(new Uint8Array(10))
  return `${prefix}-${Array.from(random, (b) => (b % 36).toString(36)).join('')}`
}
