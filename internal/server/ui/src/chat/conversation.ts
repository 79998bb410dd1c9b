import { useChat } from '@ai-sdk/react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { DefaultChatTransport, type FileUIPart } from 'ai'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { answerRun, apiFetch, cancelRun, forkSession, getNewest, getSession, makeTest, rewindSession } from '@/lib/api'
import { download } from '@/lib/download'
import { apiURL } from '@/lib/base'
import { navigate } from '@/lib/router'
import { isOver } from '@/lib/runstate'
import { placesOf, textOf, toChat, type ChatMessage, type Place } from '@/lib/transcript'
import type { Flow, StoredMessage, ToolEffect } from '@/lib/types'
import { useRun } from '@/lib/userun'
import { clearPending, keepMessages, storePending } from './draft'
import { keepDraft } from './drafts'

export interface Options {
  flow: Flow
  id: string
  initial: ChatMessage[]
  run?: string // the run that was running when the page was opened
  inputs: Record<string, unknown> // values of the session inputs
}

/** How many messages a conversation shows when it is opened, and how many more with each request for earlier ones. */
export const shownAtFirst = 40
const shownMore = 200
const nothing: StoredMessage[] = []

const path = (...parts: string[]) => parts.map(encodeURIComponent).join('/')

/** One conversation: its messages, its run, and what the user can do with them. */
export function useConversation({ flow, id, initial, run, inputs }: Options) {
  const client = useQueryClient()
  const [runID, setRunID] = useState(run)
  const [started, setStarted] = useState(initial.length > 0)
  const [memory, setMemory] = useState<string>()
  const [failure, setFailure] = useState<unknown>()
  const [notUndone, setNotUndone] = useState<ToolEffect[]>([]) // by the last rewind
  const [shown, setShown] = useState(shownAtFirst)
  const latest = useRef({ inputs, stored: false, run, messages: initial, places: new Map<string, Place>(), busy: false })

  const transport = useMemo(
    () =>
      new DefaultChatTransport<ChatMessage>({
        api: apiURL(`${path('flows', flow.id)}/stream`),
        fetch: async (url, init) => {
          const response = await apiFetch(String(url), init)
          const header = response.headers.get('X-Run-Id')
          if (header) {
            latest.current.run = header
            setRunID(header)
          }
          return response
        },
        // A flow with a memory knows the conversation, so that only the newest message is new.
        prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
          body: { id, ...(latest.current.stored ? { message: messages.at(-1) } : { messages }), trigger, messageId, ...(Object.keys(latest.current.inputs).length && { inputs: latest.current.inputs }) },
        }),
        // The id of the run gets its events from the start, also when the run has ended meanwhile.
        prepareReconnectToStreamRequest: ({ id, headers }) => ({
          api: apiURL(`${path('flows', flow.id)}/stream/${encodeURIComponent(id)}`),
          headers: { ...Object.fromEntries(new Headers(headers)), ...(latest.current.run && { 'Last-Event-ID': `${latest.current.run}:0` }) },
        }),
      }),
    [flow.id],
  )

  const refresh = useCallback(() => {
    for (const key of ['session', 'messages', 'context']) void client.invalidateQueries({ queryKey: [key, id] })
    void client.invalidateQueries({ queryKey: ['sessions'] })
    void client.invalidateQueries({ queryKey: ['trace'] })
    void client.invalidateQueries({ queryKey: ['runs'] })
  }, [client, id])

  const chat = useChat<ChatMessage>({
    id,
    messages: initial,
    transport,
    resume: run !== undefined,
    experimental_throttle: 50,
    onFinish: ({ message, isDisconnect }) => {
      if (!isDisconnect && message.metadata?.status !== 'waiting') clearPending(id)
      refresh()
    },
    onError: refresh,
  })

  const busy = chat.status === 'submitted' || chat.status === 'streaming'
  const detail = useQuery({ queryKey: ['session', id], queryFn: () => getSession(id), enabled: started && !busy, retry: false })
  const chosen = memory ?? detail.data?.memories?.[0]?.id
  const stored = useQuery({
    queryKey: ['messages', id, chosen ?? '', shown],
    queryFn: () => getNewest(id, chosen, shown),
    enabled: started && !!chosen,
    placeholderData: (old) => old,
  })
  latest.current.inputs = inputs
  latest.current.stored = (detail.data?.memories?.length ?? 0) > 0

  const { state: runState } = useRun(runID)
  const tools = useRef(runState.tools)
  if (Object.keys(runState.tools).length > 0) tools.current = { ...tools.current, ...runState.tools }
  const waiting = busy || !isOver(runState.status) ? runState.pending : []
  useEffect(() => {
    if (isOver(runState.status)) refresh()
  }, [runState.status, refresh])

  const { messages } = chat
  const ended = isOver(runState.status)
  const withoutMemory = ended && detail.data?.memories?.length === 0
  useEffect(() => {
    if (withoutMemory && !busy && messages.length > 0) keepMessages(id, messages)
  }, [withoutMemory, busy, messages, id])

  const shownIDs = chat.messages.map((m) => m.id).join(' ') // while an answer is streamed, only its text changes
  const given = detail.data?.feedback
  const places = useMemo(() => placesOf(chat.messages, stored.data?.messages ?? [], given?.filter((f) => f.memory === chosen)), [shownIDs, stored.data, given, chosen])
  // What actions read: messages that did not change keep the functions of an earlier rendering.
  Object.assign(latest.current, { messages, places, busy })

  const { setMessages } = chat
  useEffect(() => {
    if (busy || shown === shownAtFirst || stored.isPlaceholderData) return
    const first = places.get(messages[0]?.id)
    const earlier = first ? toChat((stored.data?.messages ?? []).filter((m) => m.turn < first.turn)) : []
    if (earlier.length > 0) setMessages([...earlier, ...messages])
  }, [busy, shown, stored.isPlaceholderData, stored.data, places, messages, setMessages])

  /** Does what the user requested; a failure is shown below the messages. */
  const attempt = async (action: () => Promise<void>) => {
    setFailure(undefined)
    await action().catch(setFailure)
  }
  const send = (text: string, files: FileUIPart[] = []) => {
    setStarted(true)
    keepDraft(flow.id, id)
    const parts: ChatMessage['parts'] = [...files, ...(text ? [{ type: 'text' as const, text }] : [])]
    storePending(id, { id: `pending-${id}`, role: 'user', parts })
    return chat.sendMessage({ role: 'user', parts })
  }
  const stop = async () => {
    if (runID) void cancelRun(runID)
    await chat.stop()
  }
  const turnBefore = (index: number) => Math.max(0, ...latest.current.messages.slice(0, index).map((m) => latest.current.places.get(m.id)?.turn ?? 0))
  /** Removes a user message and all after it, from the window of the model too, and sends another. */
  const resend = (index: number, text: string, files: FileUIPart[]) => attempt(async () => {
    const before = latest.current.messages.slice(0, index)
    const place = latest.current.places.get(latest.current.messages[index].id)
    if (latest.current.busy) await stop()
    // Without a place, the turn may have been stored when it was stopped.
    const to = place ? { turn: place.turn } : latest.current.stored ? { keep: turnBefore(index) } : undefined
    setNotUndone((to && (await rewindSession(id, to)).not_undone) ?? [])
    chat.clearError()
    chat.setMessages(before)
    await send(text, files)
  })
  /** Opens a copy of the conversation that ends with a turn. */
  const fork = (turn: number) => attempt(async () => {
    const copy = await forkSession(id, turn)
    refresh()
    navigate(path('chat', flow.id, copy.id))
  })
  /** Downloads a test of the conversation that ends with a turn. */
  const test = (turn: number) => attempt(async () => download(`${id}-${turn}.qtype-test.yaml`, await makeTest(id, turn, chosen), 'application/yaml'))
  const retry = (index: number) => {
    const { messages } = latest.current
    const user = messages.findLastIndex((m, i) => i <= index && m.role === 'user')
    if (user < 0) return Promise.resolve()
    const { parts } = messages[user]
    return resend(user, textOf(parts), parts.filter((p): p is FileUIPart => p.type === 'file'))
  }
  const answer = async (a: { id: string; approved?: boolean; reason?: string; result?: unknown; error?: string }) => {
    const target = runID ?? detail.data?.run
    if (!target) throw new Error('The run that waits for this answer is not known. Reload the page.')
    await answerRun(target, a)
    if (!busy) await chat.resumeStream()
  }
  return { chat, busy, detail: detail.data, stored: stored.data?.messages ?? nothing, more: stored.data?.more ?? false, showMore: () => setShown((n) => n + shownMore), places, memory: chosen, setMemory, runID, tools: tools.current, runState, waiting, send, stop, resend, retry, fork, test, failure, notUndone, answer, refresh }
}

export type Conversation = ReturnType<typeof useConversation>
