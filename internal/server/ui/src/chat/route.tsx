import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ProblemCard } from '@/components/problem'
import { Skeleton } from '@/components/ui'
import { getNewest, getSession } from '@/lib/api'
import { asProblem } from '@/lib/problem'
import { textOf, toChat, type ChatMessage } from '@/lib/transcript'
import type { Flow } from '@/lib/types'
import { FlowHeader } from '@/shell/header'
import { keptMessages, readPending } from './draft'
import { shownAtFirst } from './conversation'
import { isUnsent, markSent, useDraft } from './drafts'
import { ChatPage } from './page'

export { newConversation } from './drafts'

/** The conversation of an address, or a new one. */
export function ChatRoute({ flow, session }: { flow: Flow; session?: string }) {
  const draft = useDraft(flow.id)
  const id = session ?? draft
  return <Loader key={id} flow={flow} id={id} />
}

function Loader({ flow, id }: { flow: Flow; id: string }) {
  const [unsent] = useState(() => isUnsent(id))
  useEffect(() => () => markSent(id), [id])
  if (unsent) return <ChatPage flow={flow} id={id} initial={[]} />
  return <StoredChat flow={flow} id={id} />
}

/** Reads a conversation and its messages of the first memory once; later changes come from the chat. */
async function load(id: string) {
  try {
    const detail = await getSession(id)
    const memory = detail.memories?.[0]?.id
    const stored = memory ? (await getNewest(id, memory, shownAtFirst)).messages : []
    return { detail, chat: memory ? toChat(stored) : keptMessages<ChatMessage>(id) }
  } catch (error) {
    if (asProblem(error).status === 404) return { detail: undefined, chat: keptMessages<ChatMessage>(id) }
    throw error
  }
}

function StoredChat({ flow, id }: { flow: Flow; id: string }) {
  const loaded = useQuery({ queryKey: ['opened', id], queryFn: () => load(id), gcTime: 0, staleTime: Infinity })
  if (loaded.data) return <ChatPage flow={flow} id={id} initial={withPending(id, loaded.data.chat)} run={loaded.data.detail?.run ?? undefined} />
  return (
    <>
      <FlowHeader flow={flow} view="chat" title={id} />
      <main id="main" tabIndex={-1} className="mx-auto w-full max-w-3xl flex-1 px-5 pt-8 outline-none">
        <h1 className="sr-only">{id}</h1>
        {loaded.error ? <ProblemCard error={loaded.error} title="The conversation cannot be read" onRetry={() => loaded.refetch()} /> : <Skeleton lines={8} />}
      </main>
    </>
  )
}

/** Adds the message of a turn that runs or was interrupted; it is stored only when the turn ends. */
function withPending(id: string, chat: ChatMessage[]): ChatMessage[] {
  const pending = readPending<ChatMessage>(id)
  const last = chat.findLast((m) => m.role === 'user')
  if (!pending || (last && textOf(last.parts) === textOf(pending.parts))) return chat
  return [...chat, pending]
}
