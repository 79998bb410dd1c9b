// The replay of a transcript through a memory, with its window as a gauge.
import type { Checker } from './checker'
import { element, make, messageOf, note } from './page'

interface Line { line: number; tokens: number; used: number; limit: number; unit: string; messages: number; evicted: number }
interface Message { role: string; name?: string; content?: unknown; tool_calls?: { function?: { name?: string; arguments?: string } }[]; tokens: number }
interface Replayed { lines: Line[] | null; shown?: { line: number; window: Message[] }; error?: { line: number; message: string } }
export interface Memory { id: string; policy: string; doc: string }

const numbers = new Intl.NumberFormat('en')

/** textOf returns the content of a message. */
function textOf(message: Message): string {
  const parts = Array.isArray(message.content) ? message.content : [message.content]
  const texts = parts.filter((part) => part !== null && part !== undefined).map((part) => {
    if (typeof part === 'string') return part
    const { text, type } = part as { text?: unknown; type?: unknown }
    return typeof text === 'string' ? text : `[${String(type)}]`
  })
  for (const call of message.tool_calls ?? []) texts.push(`→ ${String(call.function?.name)}(${String(call.function?.arguments)})`)
  return texts.join(' ')
}

export class Replay {
  private document = ''
  private running = 0

  constructor(private readonly checker: Checker) {
    element<HTMLSelectElement>('memories').onchange = () => void this.run()
    element<HTMLTextAreaElement>('transcript').oninput = () => { this.toEnd = true; void this.run() }
    element<HTMLInputElement>('line').oninput = () => void this.run()
  }

  private toEnd = true // the slider is at the last line

  /** open shows the memories of a document without errors. */
  open(text: string, memories: Memory[]) {
    this.document = text
    const list = element<HTMLSelectElement>('memories')
    const chosen = list.value
    list.replaceChildren(...memories.map((m) => {
      const option = make('option', '', `${m.id} (${m.policy}: ${m.doc})`)
      option.value = m.id
      return option
    }))
    if (memories.some((m) => m.id === chosen)) list.value = chosen
    element('replay').hidden = memories.length === 0
    note('memory-note', memories.length ? '' : 'This document declares no memory.')
    if (memories.length) void this.run()
  }

  /** transcript makes a text the transcript. */
  transcript(text: string) {
    element<HTMLTextAreaElement>('transcript').value = text
    this.toEnd = true
  }

  async run() {
    if (!this.document) return
    const mine = ++this.running
    const slider = element<HTMLInputElement>('line')
    const transcript = element<HTMLTextAreaElement>('transcript').value
    const line = this.toEnd ? 0 : Number(slider.value)
    this.toEnd = false
    try {
      const done = await this.checker.call<Replayed>('replay', { text: this.document, memory: element<HTMLSelectElement>('memories').value, transcript, line })
      if (mine === this.running) this.show(done, line)
    } catch (error) {
      if (mine === this.running) note('transcript-error', messageOf(error))
    }
  }

  private show(done: Replayed, wanted: number) {
    const lines = done.lines ?? []
    note('transcript-error', done.error ? `Line ${done.error.line}: ${done.error.message}` : '')
    const slider = element<HTMLInputElement>('line')
    slider.max = String(Math.max(1, lines.at(-1)?.line ?? 1))
    if (wanted === 0) slider.value = slider.max
    const at = lines.findLast((l) => l.line <= Number(slider.value))
    element('line-number').textContent = at ? `${at.line} of ${slider.max}` : ''
    this.gauge(at)
    const list = element('window')
    list.replaceChildren(...(done.shown?.window ?? []).map((message) => {
      const item = make('li')
      item.append(make('span', 'role', message.name ? `${message.role} ${message.name}` : message.role), ' ', make('span', '', textOf(message)), ' ',
        make('span', 'tokens', `${numbers.format(message.tokens)} tokens`))
      return item
    }))
  }

  private gauge(at: Line | undefined) {
    const meter = element<HTMLMeterElement>('gauge')
    const limit = at?.limit || Math.max(at?.used ?? 0, 1)
    meter.max = limit
    meter.high = limit * 0.9
    meter.value = at?.used ?? 0
    const used = numbers.format(at?.used ?? 0)
    const left = at?.evicted ? `; ${at.evicted} ${at.evicted === 1 ? 'message' : 'messages'} left the window` : ''
    const fill = !at ? 'The transcript is empty.' : (at.limit ? `${used} of ${numbers.format(at.limit)} ${at.unit}` : `${used} ${at.unit}, no limit`) + `, ${at.messages} messages${left}`
    note('fill', fill)
    meter.setAttribute('aria-valuetext', fill)
    note('counts', this.checker.estimated ? 'Tokens are estimated until the vocabulary of the model is loaded.' : 'Tokens are counted as the model counts them.')
  }
}
