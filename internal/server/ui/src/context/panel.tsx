import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { useCallback, useMemo } from 'react'
import { ProblemCard } from '@/components/problem'
import { IconButton, Skeleton } from '@/components/ui'
import { getContext } from '@/lib/api'
import { asProblem } from '@/lib/problem'
import type { Conversation } from '@/chat/conversation'
import { Blocks } from './blocks'
import { Explanation } from './explanation'
import { Flushes } from './flushes'
import { Gauge } from './gauge'
import { LastRun } from './lastrun'
import { Section } from './section'
import { ThisTurn } from './thisturn'
import { MessageMap } from './map'

interface ContextPanelProps {
  conv: Conversation
  id: string
  selected?: string
  onSelect: (messageID: string | undefined) => void
  onClose: () => void
}

/** What the model receives with the next call: how full the window is, which messages are in it, and why others are not. */
export function ContextPanel({ conv, id, selected, onSelect, onClose }: ContextPanelProps) {
  const memories = conv.detail?.memories ?? []
  const context = useQuery({
    queryKey: ['context', id, conv.memory ?? ''],
    queryFn: () => getContext(id, conv.memory),
    enabled: !!conv.memory,
    placeholderData: (old) => old,
  })
  const owners = useMemo(() => ownersOf(conv), [conv.places])
  const select = useCallback((messageID: string | undefined) => {
    onSelect(messageID)
    if (messageID) document.querySelector(`[data-message="${CSS.escape(messageID)}"]`)?.scrollIntoView({ block: 'center', behavior: 'smooth' })
  }, [onSelect])
  const c = context.data
  return (
    <div className="flex h-full flex-col">
      <div className="flex min-h-13 items-center gap-2 border-b px-4">
        <h2 className="flex-1 font-semibold">Context</h2>
        {memories.length > 1 && (
          <select aria-label="Memory" className="field h-8 min-h-0 w-auto py-0 text-[0.86rem]" value={conv.memory} onChange={(e) => conv.setMemory(e.target.value)}>
            {memories.map((m) => (
              <option key={m.id}>{m.id}</option>
            ))}
          </select>
        )}
        <IconButton small icon={X} label="Close the context" onClick={onClose} />
      </div>
      <div className="min-h-0 flex-1 overflow-auto px-4 pb-8" tabIndex={0} role="region" aria-label="Context of the next call">
        {!conv.memory && <Empty started={conv.chat.messages.length > 0} loaded={conv.detail !== undefined} busy={conv.busy} />}
        {conv.memory && context.isPending && <Skeleton lines={6} className="pt-4" />}
        {context.error && asProblem(context.error).status !== 404 && (
          <div className="pt-4">
            <ProblemCard error={context.error} title="The context cannot be read" onRetry={() => context.refetch()} />
          </div>
        )}
        {c && (
          <>
            <Gauge context={c} memory={memories.find((m) => m.id === c.memory)} />
            <Section title={conv.more ? 'Newest messages' : 'All messages'}>
              <MessageMap messages={conv.stored} owners={owners} selected={selected} onSelect={select} />
              {selected && <Explanation key={selected} place={conv.places.get(selected)} context={c} onClose={() => onSelect(undefined)} />}
            </Section>
            <Section title="The next call sends">
              <Blocks context={c} messages={conv.stored} />
            </Section>
            {c.summary && (
              <Section title="Summary">
                <p className="rounded-lg border-l-3 border-k-summary bg-raised px-3 py-2 text-[0.9rem] whitespace-pre-wrap">{c.summary}</p>
              </Section>
            )}
            {!!c.flushes?.length && (
              <Section title="Flushed so far">
                <Flushes context={c} />
              </Section>
            )}
          </>
        )}
        {conv.busy ? <ThisTurn state={conv.runState} /> : conv.runID && <LastRun run={conv.runID} />}
      </div>
    </div>
  )
}

/** The chat's message of each stored message. */
function ownersOf(conv: Conversation): Map<string, string> {
  const owners = new Map<string, string>()
  for (const [messageID, place] of conv.places) for (const m of place.stored) owners.set(m.id, messageID)
  return owners
}

function Empty({ started, loaded, busy }: { started: boolean; loaded: boolean; busy: boolean }) {
  if (started && !loaded && busy) return <p className="pt-4 text-[0.92rem] text-dim">The window is shown when this turn is stored.</p>
  if (started && loaded) return <p className="pt-4 text-[0.92rem] text-dim">This flow has no memory: each call gets the messages of this page.</p>
  return (
    <p className="pt-4 text-[0.92rem] text-dim">
      After the first message, this shows exactly what the model gets with the next call: which messages are in its window, how many tokens they use, and what was flushed and why.
    </p>
  )
}
