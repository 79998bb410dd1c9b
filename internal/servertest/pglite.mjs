// PostgreSQL with the extension vector, in one process: node pglite.mjs MODULES PORT
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const resolve = createRequire(process.argv[2] + '/').resolve
const load = name => import(pathToFileURL(resolve(name)))
const { PGlite } = await load('@electric-sql/pglite')
const { vector } = await load('@electric-sql/pglite-pgvector')
const { PGLiteSocketServer } = await load('@electric-sql/pglite-socket')
const db = await PGlite.create({ extensions: { vector } })
await new PGLiteSocketServer({ db, port: Number(process.argv[3]), host: '127.0.0.1', maxConnections: 20 }).start()
