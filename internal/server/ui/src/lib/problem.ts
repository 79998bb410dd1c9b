/** An error response of the API (RFC 9457), or a failure to reach it (status 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly fields: { pointer: string; detail: string }[] = [],
  ) {
    super(detail || title)
  }
}

/** Reads the problem of a response that is not ok. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '')
  return parseProblem(text, response.status, response.statusText)
}

/** Makes a problem of the body of an error response; other text is its detail. */
export function parseProblem(text: string, status = 0, title = ''): Problem {
  try {
    const p = JSON.parse(text)
    if (p && typeof p === 'object' && (p.title || p.detail)) {
      return new Problem(p.status ?? status, p.code ?? '', p.title ?? title, p.detail ?? '', p.errors ?? [])
    }
  } catch {
    // not JSON: the text itself is the detail
  }
  return new Problem(status, '', title || 'The request failed', text.slice(0, 500))
}

/** What the user can do about an error. */
export function adviceOf(error: unknown): string {
  const status = error instanceof Problem ? error.status : 0
  const advice: Record<number, string> = {
    400: 'Check the values and send it again.',
    401: 'Enter an API key that this server accepts.',
    403: 'Your key has no access to this. Use another key.',
    404: 'It may have been deleted or renamed. Go back and choose another.',
    409: 'Another turn of this conversation is running. Wait until it ends, then retry.',
    413: 'Send smaller or fewer files.',
    422: 'Correct the marked fields and send it again.',
    429: 'Too many requests at the moment. Wait a little, then retry.',
    503: 'The server is busy or shutting down. Retry in a moment.',
  }
  if (advice[status]) return advice[status]
  if (status >= 500) return 'Retry. If it happens again, the log of the server has the reason.'
  if (status === 0) return 'Check that the server runs and that you are connected, then retry.'
  return 'Retry, or change the request.'
}

/** An error as a problem; text that contains a problem document is parsed. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  const text = error instanceof Error ? error.message : String(error)
  if (text.trimStart().startsWith('{')) return parseProblem(text)
  if (/failed to fetch|networkerror|load failed|network error/i.test(text)) {
    return new Problem(0, 'offline', 'The server cannot be reached', 'The connection to the server failed.')
  }
  return new Problem(-1, '', 'The answer failed', text)
}
