// The files of the page. From a server they are fetched; in a folder of files, where a page
// may not fetch, each is also a script that contains it.

declare global {
  // eslint-disable-next-line no-var
  var playgroundFiles: Record<string, string> | undefined // base64 by name, from the scripts
}

const local = location.protocol === 'file:'

/** address returns the absolute address of a file of the page. */
export const address = (name: string) => new URL(name, document.baseURI).href

function loadScript(source: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = source
    script.onload = () => resolve()
    script.onerror = () => reject(new Error(`cannot load ${source}`))
    document.head.append(script)
  })
}

async function stored(name: string): Promise<Uint8Array<ArrayBuffer>> {
  if (!local) {
    const response = await fetch(address(name))
    if (!response.ok) throw new Error(`cannot load ${name}: ${response.status}`)
    return new Uint8Array(await response.arrayBuffer())
  }
  await loadScript(`local/${name}.js`)
  const encoded = globalThis.playgroundFiles?.[name]
  if (encoded === undefined) throw new Error(`cannot load ${name}`)
  delete globalThis.playgroundFiles![name]
  return Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0))
}

/** read returns the content of a file. One that is compressed has the ending .gz. */
export async function read(name: string): Promise<ArrayBuffer> {
  const content = await stored(name)
  // A server may have decompressed the file already.
  if (content[0] !== 0x1f || content[1] !== 0x8b) return content.buffer
  const plain = new Blob([content]).stream().pipeThrough(new DecompressionStream('gzip'))
  return new Response(plain).arrayBuffer()
}

/** readText is read for a text. */
export const readText = async (name: string) => new TextDecoder().decode(await read(name))

/** scriptAddress returns an address of a script for a worker. */
export async function scriptAddress(name: string): Promise<string> {
  if (!local) return address(name)
  return URL.createObjectURL(new Blob([await read(name)], { type: 'text/javascript' }))
}
