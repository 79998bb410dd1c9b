import { authHeaders, markRejected, setAPIKey } from './auth'
import { apiURL } from './base'
import { Problem, asProblem, problemOf } from './problem'
import type * as T from './types'

/** Fetches from the API with the caller's key; a network failure is a Problem of status 0. */
export async function apiFetch(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  for (const [name, value] of Object.entries(authHeaders())) headers.set(name, value)
  let response: Response
  try {
    response = await fetch(path.includes('://') ? path : apiURL(path), { ...init, headers })
  } catch (error) {
    if ((error as Error)?.name === 'AbortError') throw error
    throw asProblem(error)
  }
  if (response.status === 401) markRejected(true)
  else if (response.ok) markRejected(false)
  return response
}

async function call<R>(path: string, init?: RequestInit): Promise<R> {
  const response = await apiFetch(path, init)
  if (!response.ok) throw await problemOf(response)
  if (response.status === 204) return undefined as R
  const type = response.headers.get('content-type') ?? ''
  if (!type.includes('json')) throw new Problem(response.status, '', 'Unexpected answer', `The server sent ${type || 'no content type'} for ${path}.`)
  return (await response.json()) as R
}

const post = <R>(path: string, body: unknown, headers: Record<string, string> = {}) =>
  call<R>(path, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) })

const query = (values: Record<string, string | number | undefined | null>) => {
  const q = new URLSearchParams()
  for (const [k, v] of Object.entries(values)) if (v !== undefined && v !== null && v !== '') q.set(k, String(v))
  const text = q.toString()
  return text ? `?${text}` : ''
}
const enc = encodeURIComponent

export const getApp = () => call<T.AppInfo>('app')
export const getFlows = () => call<T.Flow[]>('flows')
export const getGraph = (flow: string) => call<T.Graph>(`flows/${enc(flow)}/graph`)

/** Starts a run of the rows and returns its id at once. */
export async function startRun(flow: string, rows: unknown, session?: string): Promise<string> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json', Prefer: 'respond-async' }
  if (session) headers['X-Session-Id'] = session
  const response = await apiFetch(`flows/${enc(flow)}`, { method: 'POST', headers, body: JSON.stringify(rows) })
  if (!response.ok) throw await problemOf(response)
  const location = response.headers.get('Location') ?? ''
  const body = await response.json().catch(() => ({}))
  const id = body.run ?? body.id ?? location.split('/').pop()
  if (!id) throw new Problem(response.status, '', 'Unexpected answer', 'The server did not name the run.')
  return typeof id === 'string' ? id : id.id
}

export const getRuns = (flow?: string, cursor?: string) => call<{ runs: T.Run[] | null; next?: string | null }>(`runs${query({ flow, cursor, limit: 30 })}`)
export const getRun = (id: string) => call<T.Run>(`runs/${enc(id)}`)
export const getTrace = (id: string) => call<{ spans: T.Span[] | null }>(`runs/${enc(id)}/trace`)
export const cancelRun = (id: string) => call<unknown>(`runs/${enc(id)}/cancel`, { method: 'POST' }).catch(() => undefined)
export const answerRun = (id: string, answer: { id: string; approved?: boolean; reason?: string; result?: unknown; error?: string }) =>
  post<unknown>(`runs/${enc(id)}/answer`, answer)

export const getApprovals = () => call<{ approvals: T.Approval[] }>('approvals')
export const decide = (run: string, answer: { id: string; approved?: boolean; reason?: string }) => post<unknown>(`approvals/${enc(run)}`, answer)

export const getSessions = (q: string, cursor?: string) =>
  call<{ sessions: T.SessionInfo[] | null; next?: string | null }>(`sessions${query({ q, cursor, limit: 40 })}`)
export const getSession = (id: string) => call<T.SessionDetail>(`sessions/${enc(id)}`)
const getMessages = (id: string, memory: string | undefined, before: string | number | undefined, limit: number) =>
  call<{ messages: T.StoredMessage[] | null; previous?: string | number | null }>(
    `sessions/${enc(id)}/messages${query({ memory, before, limit })}`,
  )

// The server's limit.
const mostOfPage = 200

/** The newest messages of a session, oldest first: about as many as are wanted, in whole turns. */
export async function getNewest(id: string, memory: string | undefined, wanted: number): Promise<{ messages: T.StoredMessage[]; more: boolean }> {
  let all: T.StoredMessage[] = []
  let before: string | number | undefined
  for (;;) {
    const { messages, previous } = await getMessages(id, memory, before, Math.min(mostOfPage, wanted - all.length))
    all = [...(messages ?? []), ...all]
    if (previous === null || previous === undefined) return { messages: all, more: false }
    const whole = all.filter((m) => m.turn !== all[0].turn) // the first turn may have begun before
    if (all.length >= wanted && whole.length > 0) return { messages: whole, more: true }
    if (all.length >= wanted) wanted += mostOfPage
    before = previous
  }
}

export const getContext = (id: string, memory?: string) => call<T.ContextState>(`sessions/${enc(id)}/context${query({ memory })}`)
export const renameSession = (id: string, title: string) =>
  call<unknown>(`sessions/${enc(id)}`, { method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ title }) })
export const forkSession = (id: string, turn: number) => post<T.SessionDetail>(`sessions/${enc(id)}/fork`, { turn })
export const rewindSession = (id: string, to: { turn: number } | { keep: number }) => post<T.SessionDetail>(`sessions/${enc(id)}/rewind`, to)
export const deleteSession = (id: string) => call<unknown>(`sessions/${enc(id)}`, { method: 'DELETE' })

async function getText(path: string): Promise<string> {
  const response = await apiFetch(path)
  if (!response.ok) throw await problemOf(response)
  return response.text()
}
/** The export of a session: one JSON object a line. */
export const exportSession = (id: string) => getText(`sessions/${enc(id)}/export`)
/** A test of a conversation up to a turn: the text of a test file. */
export const makeTest = (id: string, turn: number, memory?: string) => getText(`sessions/${enc(id)}/test${query({ turn, memory })}`)

/** Forgets the key of this tab and the cookie of the sign-in page. */
export async function signOut(): Promise<void> {
  await apiFetch('sign-out', { method: 'POST' }).catch(() => undefined)
  setAPIKey('')
  window.location.reload()
}

export interface Feedback {
  span_id?: string
  trace_id?: string
  run?: string
  session?: string
  memory?: string
  turn?: number
  feedback: { type: 'thumbs'; value: boolean } | { type: 'rating'; score: number } | { type: 'category'; categories: string[] }
  explanation?: string
}
export const sendFeedback = (f: Feedback) => post<{ status: string; message: string }>('feedback', f)
