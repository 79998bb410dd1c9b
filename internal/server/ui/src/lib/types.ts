import type { UIMessage } from 'ai'

/** A JSON Schema as the server writes it: each property has the type of the language in qtype_type. */
export interface Schema {
  type?: string | string[]
  title?: string
  description?: string
  format?: string
  enum?: unknown[]
  default?: unknown
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  $ref?: string
  $defs?: Record<string, Schema>
  minimum?: number
  maximum?: number
  examples?: unknown[]
  contentMediaType?: string
  qtype_type?: string
  'x-ui'?: { widget?: string; accept?: string; label?: string; placeholder?: string; help?: string }
}

export interface Diagnostic {
  code?: string
  severity?: string
  message: string
  file?: string
  line?: number
  column?: number
  excerpt?: string
}

export interface AppInfo {
  id: string
  description?: string | null
  version?: string
  flows: number
  authentication: 'none' | 'key' | 'oidc'
  principal: string | null
  simulated: string[] | null
  reload_error: null | { message: string; diagnostics?: (Diagnostic | string)[] | null }
  features?: { batch?: boolean; traces?: boolean; feedback?: boolean; tests?: boolean } | null
}

export interface FeedbackConfig {
  type: 'thumbs' | 'rating' | 'category'
  explanation?: boolean
  scale?: number
  categories?: string[]
  allow_multiple?: boolean
}

export interface Flow {
  id: string
  description?: string | null
  interface_type: 'Complete' | 'Conversational' | null
  session_inputs?: string[] | null
  endpoints: { rest: string; stream?: string | null }
  input_schema: Schema
  output_schema: Schema
  examples?: string[] | null
  feedback: FeedbackConfig | null
  telemetry_enabled?: boolean
}

export interface GraphNode {
  id: string
  type: string
  label?: string
  reads?: string[] | null
  writes?: string[] | null
  uses?: { kind: string; id: string }[] | null
  yaml?: string
  file?: string
  line?: number
}
export interface Graph {
  nodes: GraphNode[]
  edges: { from: string; to: string }[] | null
  mermaid?: string
}

export interface RunRequest {
  id: string
  kind: 'approval' | 'client_tool'
  tool: string
  description?: string
  arguments: Record<string, unknown>
  schema?: Schema | null
  step?: string
  row?: number
  call?: string // the id of the tool call
  by?: string[] | null // who decides, if it is not the caller: caller, role:NAME
}
export interface Approval {
  run: string
  flow: string
  caller: string
  created: string
  request: RunRequest
}
export type RunStatus = 'queued' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'cancelled'
export interface RowError {
  row?: number
  step_id: string
  error_message: string
  exception_type?: string
}
export interface Output {
  metadata?: { row?: number; span_id?: string; trace_id?: string } & Record<string, unknown>
  [output: string]: unknown
}
export interface Run {
  id: string
  flow: string
  session?: string | null
  status: RunStatus
  created: string
  updated: string
  error?: string
  rows?: { read: number; done: number; failed: number } | null
  pending?: RunRequest[] | null
  errors?: RowError[] | null
  outputs?: Output[] | null
}

export interface Span {
  id: string
  parent?: string | null
  name: string
  kind: string
  step?: string
  start: string
  end?: string | null
  error?: string | null
  attributes?: Record<string, unknown> | null
  input?: unknown
  output?: unknown
  tokens?: { input?: number; output?: number; cached?: number } | null
  cost?: number | null
}

export interface SessionInfo {
  id: string
  title?: string | null
  flow?: string | null
  messages?: number
  updated?: string
  memories?: string[] | null
}
export interface MemoryState {
  id: string
  policy?: string
  messages: number
  in_window: number
  used: number
  limit: number
  unit: string
  tokens?: number
  flushes?: number
}
export interface SessionDetail {
  id: string
  title?: string | null
  flow?: string | null
  created?: string
  updated?: string
  memories: MemoryState[] | null
  run: string | null
  feedback?: GivenFeedback[] | null
  not_undone?: ToolEffect[] // of a rewind
}
/** What the user has said of the answer of a turn. */
export interface GivenFeedback {
  memory: string
  turn: number
  run?: string
  type: string
  value?: boolean
  score?: number
  categories?: string[]
  explanation?: string
}
/** A call of a tool that a rewind has not undone. */
export interface ToolEffect {
  tool: string
  arguments: string
  step?: string // that calls it in each turn that reaches it; the arguments are not known
}

export type MessageStatus = 'in_window' | 'evicted' | 'summarized' | 'failed' | 'stopped' | 'replaced'
export interface StoredMessage {
  id: string
  seq: number
  turn: number
  role: string
  name?: string
  parts: UIMessage['parts']
  tokens?: number
  time?: string
  status: MessageStatus
  reason?: string | null
  stopped?: boolean // the user stopped the answer
}

export interface ContextBlock {
  kind: string
  role?: string
  tokens: number
  units?: number
  text?: string
  cut?: boolean
}
export interface Flush {
  time: string
  turn: number
  from: number
  to: number
  messages: number
  tokens: number
  reason: string
}
export interface ContextState {
  memory: string
  used: number
  limit: number
  unit: string
  model?: string
  context_window?: number
  blocks: ContextBlock[] | null
  flushes: Flush[] | null
  summary?: string | null
}
