/** A row of the file with its inputs. index counts the rows of the file from 0. */
export interface BatchRow {
  index: number
  inputs: Record<string, unknown>
  session?: string // its conversation; rows without one may share a request
  alone?: boolean // it is a conversation by itself
}

/** The rows of one request. */
export interface Chunk {
  session?: string
  rows: BatchRow[]
}

// Rows of one request. A batch is paused between requests.
const chunkSize = 100

/** Divides rows into requests: each has one conversation, and rows keep their order in it. */
export function chunksOf(rows: BatchRow[]): Chunk[] {
  const chunks: Chunk[] = []
  const sessions = new Map<string, Chunk>()
  for (const row of rows) {
    const session = row.session
    if (row.alone && session === undefined) {
      chunks.push({ rows: [row] })
      continue
    }
    const chunk = sessions.get(session ?? '')
    // The rows of a conversation are one request, because requests are sent at the same time.
    if (chunk && (session !== undefined || chunk.rows.length < chunkSize)) chunk.rows.push(row)
    else {
      const begun = { session, rows: [row] }
      sessions.set(session ?? '', begun)
      chunks.push(begun)
    }
  }
  return chunks
}
