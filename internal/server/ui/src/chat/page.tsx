import { ArrowDown, PanelRight } from 'lucide-react'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { Dialog, IconButton } from '@/components/ui'
import { ContextPanel } from '@/context/panel'
import { fieldsOf, initialValues, requestBody } from '@/lib/schema'
import { textOf, type ChatMessage } from '@/lib/transcript'
import type { Flow } from '@/lib/types'
import { FlowHeader } from '@/shell/header'
import { Composer, type ComposerHandle } from './composer'
import { useConversation, type Conversation } from './conversation'
import { takePrompt } from './draft'
import { MessageList } from './list'
import { SessionInputs } from './inputs'
import { useStickToBottom, useWide } from './layout'
import { ChatStatus } from './status'

interface ChatPageProps {
  flow: Flow
  id: string
  initial: ChatMessage[]
  run?: string
}

/** A conversation, with the context of the next call next to it. */
export function ChatPage({ flow, id, initial, run }: ChatPageProps) {
  const fields = useMemo(() => fieldsOf(flow.input_schema).filter((f) => f.control !== 'message'), [flow])
  const [values, setValues] = useState(() => initialValues(fields))
  const conv = useConversation({ flow, id, initial, run, inputs: requestBody(fields, values) })
  const wide = useWide()
  const [panel, setPanel] = useState(() => localStorage.getItem('qtype.panel') !== 'closed')
  const [sheet, setSheet] = useState(false)
  const [selected, setSelected] = useState<string>()
  const composer = useRef<ComposerHandle>(null)
  const [prompt] = useState(() => takePrompt(flow.id))
  const togglePanel = () => {
    if (!wide) return setSheet(!sheet)
    localStorage.setItem('qtype.panel', panel ? 'closed' : 'open')
    setPanel(!panel)
  }
  const explain = useCallback((messageID: string) => {
    setSelected(messageID)
    if (wide) setPanel(true)
    else setSheet(true)
  }, [wide])
  const context = <ContextPanel conv={conv} id={id} selected={selected} onSelect={setSelected} onClose={togglePanel} />
  const firstInput = fields.length > 0 && conv.chat.messages.length === 0
  return (
    <>
      <FlowHeader flow={flow} view="chat" title={conv.detail?.title || firstText(conv.chat.messages) || (conv.chat.messages.length ? id : 'New conversation')}>
        <ChatStatus conv={conv} />
        <IconButton icon={PanelRight} label="Context" aria-pressed={wide ? panel : sheet} onClick={togglePanel} />
      </FlowHeader>
      <div className="flex min-h-0 flex-1">
        <main id="main" tabIndex={-1} className="flex min-w-0 flex-1 flex-col outline-none">
          <h1 className="sr-only">Conversation {conv.detail?.title ?? id}</h1>
          <Messages flow={flow} conv={conv} onExplain={explain} selected={selected} onPrompt={(text) => composer.current?.fill(text)} />
          <div className="mx-auto w-full max-w-3xl px-3 pb-3 md:px-5">
            {firstInput && <SessionInputs fields={fields} values={values} onChange={setValues} />}
            <Composer ref={composer} flow={flow} conv={conv} initial={prompt} />
          </div>
        </main>
        {wide && panel && <aside aria-label="Context" className="w-[21.5rem] shrink-0 border-l bg-panel">{context}</aside>}
      </div>
      {!wide && (
        <Dialog side="right" open={sheet} onClose={() => setSheet(false)} title="Context" hideTitle>
          {context}
        </Dialog>
      )}
      <Announcer conv={conv} />
    </>
  )
}

/** What a conversation without a title is called. */
function firstText(messages: ChatMessage[]): string {
  const first = messages.find((m) => m.role === 'user')
  return first ? textOf(first.parts).slice(0, 80) : ''
}

interface MessagesProps {
  flow: Flow
  conv: Conversation
  selected?: string
  onExplain: (messageID: string) => void
  onPrompt: (text: string) => void
}
function Messages({ flow, conv, selected, onExplain, onPrompt }: MessagesProps) {
  const { scroller, content, atBottom, toBottom } = useStickToBottom()
  useEffect(() => {
    if (conv.chat.status === 'submitted') toBottom()
  }, [conv.chat.status, toBottom])
  return (
    <div className="relative min-h-0 flex-1">
      <div ref={scroller} tabIndex={0} role="region" aria-label="Messages" className="h-full overflow-auto overscroll-contain">
        <div ref={content} className="mx-auto max-w-3xl px-4 pt-6 pb-8 md:px-6">
          <MessageList flow={flow} conv={conv} selected={selected} onExplain={onExplain} onPrompt={onPrompt} />
        </div>
      </div>
      {!atBottom && (
        <IconButton icon={ArrowDown} label="Newest message" variant="secondary" onClick={toBottom} className="absolute bottom-3 left-1/2 -translate-x-1/2 rounded-full! shadow-pop" />
      )}
    </div>
  )
}

/** Reports the progress of an answer to screen readers: its start, questions, and the whole text at its end. */
function Announcer({ conv }: { conv: Conversation }) {
  const { messages, status } = conv.chat
  const before = useRef(status)
  const [text, setText] = useState('')
  useEffect(() => {
    const was = before.current
    before.current = status
    if (status === 'submitted') setText('The message was sent. The answer is being written.')
    else if (status === 'ready' && was === 'streaming') setText(textOf(messages.at(-1)?.parts ?? []).slice(0, 2000))
    else if (status === 'error') setText('The answer failed.')
  }, [status, messages])
  const waiting = conv.waiting.length
  return (
    <div aria-live="polite" className="sr-only">
      {waiting ? `${conv.waiting[0].tool} waits for your answer.` : text}
    </div>
  )
}
