// Serves the folder QTYPE_PLAYGROUND, as any server of files does.
import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'

const folder = process.env.QTYPE_PLAYGROUND
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.gz': 'application/gzip' }

createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname)
  const file = join(folder, normalize(path.endsWith('/') ? `${path}index.html` : path))
  try {
    statSync(file)
  } catch {
    response.writeHead(404).end()
    return
  }
  response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream' })
  createReadStream(file).pipe(response)
}).listen(Number(process.argv[2]), '127.0.0.1')
