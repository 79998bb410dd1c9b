// The worker that runs the program. It is separate from the page, so that a document whose
// check takes too long does not stop the page: the page ends the worker.
// Of wasm_exec.js of Go, which make playground writes before this script.
declare class Go {
  importObject: WebAssembly.Imports
  run(instance: WebAssembly.Instance): Promise<void>
}

interface Program {
  start(version: string, schema: string): Promise<string>
  call(name: string, params: string): Promise<string>
  supply(file: string, content: Uint8Array): Promise<string>
}

export type ToWorker =
  | { kind: 'start'; id: number; program: ArrayBuffer; schema: string }
  | { kind: 'call'; id: number; name: string; params: string }
  | { kind: 'supply'; id: number; file: string; content: ArrayBuffer }

const program = () => (globalThis as unknown as { qtype: Program }).qtype

async function start(message: Extract<ToWorker, { kind: 'start' }>): Promise<string> {
  const go = new Go()
  const { instance } = await WebAssembly.instantiate(message.program, go.importObject)
  void go.run(instance).finally(() => postMessage({ ended: true }))
  return program().start('playground', message.schema)
}

function handle(message: ToWorker): Promise<string> {
  switch (message.kind) {
    case 'start':
      return start(message)
    case 'call':
      return program().call(message.name, message.params)
    case 'supply':
      return program().supply(message.file, new Uint8Array(message.content))
  }
}

onmessage = async (event: MessageEvent<ToWorker>) => {
  try {
    postMessage({ id: event.data.id, result: await handle(event.data) })
  } catch (error) {
    postMessage({ id: event.data.id, error: error instanceof Error ? error.message : String(error) })
  }
}
