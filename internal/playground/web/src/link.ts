// Links that carry the document: #d= and the compressed text in base64url, so that no
// server receives it.

const most = 1 << 20 // bytes of a document

async function pipe(content: Uint8Array<ArrayBuffer>, through: TransformStream<BufferSource, Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([content]).stream().pipeThrough(through as unknown as ReadableWritablePair<Uint8Array, Uint8Array>).getReader()
  const parts: Uint8Array<ArrayBuffer>[] = []
  for (let size = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer())
    size += value.length
    if (size > most) throw new Error('the document of the link is too large')
    parts.push(value as Uint8Array<ArrayBuffer>)
  }
}

/** encode returns the fragment of a link to a document. */
export async function encode(text: string): Promise<string> {
  const packed = await pipe(new TextEncoder().encode(text), new CompressionStream('deflate-raw') as never)
  let binary = ''
  for (const byte of packed) binary += String.fromCharCode(byte)
  return '#d=' + btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** decode returns the document of a fragment, undefined if it has none. */
export async function decode(fragment: string): Promise<string | undefined> {
  if (!fragment.startsWith('#d=')) return undefined
  try {
    const binary = atob(fragment.slice(3).replaceAll('-', '+').replaceAll('_', '/'))
    const packed = Uint8Array.from(binary, (c) => c.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(await pipe(packed, new DecompressionStream('deflate-raw') as never))
  } catch {
    throw new Error('the link is damaged: its document cannot be read')
  }
}
