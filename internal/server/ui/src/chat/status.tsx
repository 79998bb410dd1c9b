import { Badge } from '@/components/ui'
import type { Conversation } from './conversation'

/** What the conversation is doing. */
export function ChatStatus({ conv }: { conv: Conversation }) {
  const { status, messages } = conv.chat
  if (conv.waiting.length > 0) return <Badge tone="warn">waiting for you</Badge>
  if (status === 'error') return <Badge tone="bad">failed</Badge>
  if (!conv.busy) return null
  const step = messages.at(-1)?.role === 'assistant' ? messages.at(-1)?.metadata?.step_id : undefined
  return (
    <Badge tone="accent">
      <span aria-hidden className="size-1.5 animate-pulse rounded-full bg-accent" />
      {status === 'submitted' ? 'sending' : 'streaming'}
      {step && <span className="max-sm:hidden">· {step}</span>}
    </Badge>
  )
}
