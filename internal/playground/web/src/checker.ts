// The program in its worker.
import { read, readText, scriptAddress } from './files'
import type { ToWorker } from './worker'

const callTimeout = 15_000 // milliseconds of one call

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never
type Message = WithoutId<ToWorker>

interface Waiting {
  resolve(text: string): void
  reject(error: Error): void
}

export class Checker {
  /** onVocabulary is called after the vocabularies that were missing have been loaded. */
  onVocabulary: () => void = () => {}
  /** estimated reports whether counts are estimates, because a vocabulary is not loaded. */
  estimated = false

  private worker?: Promise<Worker>
  private waiting = new Map<number, Waiting>()
  private last = 0
  private supplied = new Map<string, Promise<ArrayBuffer>>()

  /** call calls a function of the program and returns its result. */
  async call<R>(name: string, params: object): Promise<R> {
    this.worker ??= this.start()
    const worker = await this.worker
    const { answer, missing } = JSON.parse(await this.send(worker, { kind: 'call', name, params: JSON.stringify(params) }, callTimeout)) as {
      answer: { result?: R; error?: string }
      missing: string[] | null
    }
    this.estimated = Boolean(missing?.length)
    for (const file of missing ?? []) void this.supply(worker, file)
    if (answer.error !== undefined) throw new Error(answer.error)
    return answer.result as R
  }

  private async start(): Promise<Worker> {
    const [program, schema, source] = await Promise.all([read('qtype.wasm.gz'), readText('schema.json.gz'), scriptAddress('worker.js')])
    const worker = new Worker(source)
    worker.onmessage = (event: MessageEvent<{ id: number; result: string; error?: string; ended?: boolean }>) => {
      if (event.data.ended) return this.end(worker, 'the checker ended; it is started again')
      const waiting = this.waiting.get(event.data.id)
      this.waiting.delete(event.data.id)
      if (event.data.error === undefined) waiting?.resolve(event.data.result)
      else waiting?.reject(new Error(event.data.error))
    }
    worker.onerror = (event) => this.end(worker, event.message || 'the checker cannot be started')
    await this.send(worker, { kind: 'start', program, schema }, 60_000, [program])
    for (const [file, content] of this.supplied) await this.send(worker, { kind: 'supply', file, content: await content }, callTimeout)
    return worker
  }

  private send(worker: Worker, message: Message, timeout: number, transfer: Transferable[] = []): Promise<string> {
    const id = ++this.last
    return new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => this.end(worker, 'the document takes too long to check'), timeout)
      const settle = <T>(f: (value: T) => void) => (value: T) => { clearTimeout(timer); f(value) }
      this.waiting.set(id, { resolve: settle(resolve), reject: settle(reject) })
      worker.postMessage({ ...message, id }, transfer)
    })
  }

  /** end ends a worker. The next call starts another one. */
  private end(worker: Worker, reason: string) {
    worker.terminate()
    this.worker = undefined
    const all = [...this.waiting.values()]
    this.waiting.clear()
    for (const waiting of all) waiting.reject(new Error(reason))
  }

  /** supply loads a vocabulary, once. */
  private async supply(worker: Worker, file: string) {
    if (this.supplied.has(file)) return
    const content = read(`vocabularies/${file}.gz`)
    this.supplied.set(file, content)
    try {
      await this.send(worker, { kind: 'supply', file, content: await content }, callTimeout)
      this.onVocabulary()
    } catch {
      this.supplied.delete(file) // counts remain estimates; the next call tries again
    }
  }
}
