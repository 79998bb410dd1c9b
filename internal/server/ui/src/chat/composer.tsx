import type { FileUIPart } from 'ai'
import { ArrowUp, Paperclip, Square } from 'lucide-react'
import { forwardRef, useEffect, useImperativeHandle, useRef, useState, type ClipboardEvent, type KeyboardEvent } from 'react'
import { IconButton, cx } from '@/components/ui'
import { fieldsOf } from '@/lib/schema'
import type { Flow } from '@/lib/types'
import { AttachmentList, useAttachments } from './attachments'
import type { Conversation } from './conversation'

export interface ComposerHandle {
  fill: (text: string) => void
}
interface ComposerProps {
  flow: Flow
  conv: Conversation
  initial: string
}

/** The input of the chat. */
export const Composer = forwardRef<ComposerHandle, ComposerProps>(function Composer({ flow, conv, initial }, ref) {
  const [text, setText] = useState(initial)
  const input = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  const files = useAttachments()
  const dragging = useDrop(files.add)
  const accept = fieldsOf(flow.input_schema).find((f) => f.control === 'message')?.accept
  useImperativeHandle(ref, () => ({
    fill(value) {
      setText(value)
      input.current?.focus()
    },
  }))
  useEffect(() => {
    if (matchMedia('(pointer: fine)').matches) input.current?.focus()
  }, [])
  useStopKey(conv)
  const active = conv.busy || conv.waiting.length > 0
  const ready = text.trim() !== '' || files.parts.length > 0
  const submit = () => {
    if (!ready || active) return
    void conv.send(text.trim(), files.parts)
    setText('')
    files.clear()
  }
  const press = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing) return
    if (e.key === 'Enter' && !e.shiftKey) {
      e.preventDefault()
      submit()
    } else if (e.key === 'ArrowUp' && text === '') {
      const edits = document.querySelectorAll<HTMLButtonElement>('[data-edit]')
      if (edits.length) e.preventDefault()
      edits[edits.length - 1]?.click()
    }
  }
  const paste = (e: ClipboardEvent) => {
    if (e.clipboardData.files.length === 0) return
    e.preventDefault()
    files.add(e.clipboardData.files)
  }
  return (
    <div className={cx('rounded-2xl border bg-raised shadow-sm focus-within:border-accent', dragging ? 'border-dashed border-accent' : 'border-line-strong')}>
      <AttachmentList files={files} />
      {dragging && <p className="px-4 pt-3 text-accent">Drop the files to attach them</p>}
      <label htmlFor="composer" className="sr-only">Message</label>
      <textarea
        id="composer"
        ref={input}
        rows={1}
        value={text}
        onChange={(e) => setText(e.target.value)}
        onKeyDown={press}
        onPaste={paste}
        placeholder="Write a message"
        className="block field-sizing-content max-h-[38vh] min-h-12 w-full resize-none bg-transparent px-4 pt-3 pb-1 outline-none"
      />
      <div className="flex items-center gap-1 px-2 pb-2">
        <input ref={picker} type="file" multiple hidden accept={accept || undefined} onChange={(e) => (e.target.files && files.add(e.target.files), (e.target.value = ''))} />
        <IconButton small icon={Paperclip} label="Attach files" onClick={() => picker.current?.click()} />
        <p className="ml-1 flex-1 truncate text-[0.78rem] text-dim max-sm:invisible">{active ? 'Esc stops the answer' : 'Enter sends, Shift+Enter starts a new line, ↑ edits the last message'}</p>
        {active ? (
          <IconButton small icon={Square} label="Stop" variant="secondary" onClick={() => (void conv.stop(), input.current?.focus())} className="size-8! rounded-full!" />
        ) : (
          <IconButton small icon={ArrowUp} label="Send" variant="primary" disabled={!ready} onClick={submit} className="size-8! rounded-full!" />
        )}
      </div>
    </div>
  )
})

/** Stops the answer with Escape, wherever the focus is outside of dialogs and of messages that are edited. */
function useStopKey(conv: Conversation): void {
  const latest = useRef(conv)
  latest.current = conv
  useEffect(() => {
    const press = (e: globalThis.KeyboardEvent) => {
      const target = e.target as HTMLElement
      if (e.key === 'Escape' && !e.defaultPrevented && (latest.current.busy || latest.current.waiting.length > 0) && !target.closest('[role=dialog], [role=menu], form')) void latest.current.stop()
    }
    window.addEventListener('keydown', press)
    return () => window.removeEventListener('keydown', press)
  }, [])
}

/** Receives files that are dropped anywhere on the page. */
function useDrop(add: (files: FileList) => void): boolean {
  const [dragging, setDragging] = useState(false)
  const latest = useRef(add)
  latest.current = add
  useEffect(() => {
    const hasFiles = (e: DragEvent) => e.dataTransfer?.types.includes('Files')
    const over = (e: DragEvent) => hasFiles(e) && (e.preventDefault(), setDragging(true))
    const leave = (e: DragEvent) => e.relatedTarget === null && setDragging(false)
    const drop = (e: DragEvent) => {
      if (!hasFiles(e)) return
      e.preventDefault()
      setDragging(false)
      latest.current(e.dataTransfer!.files)
    }
    window.addEventListener('dragover', over)
    window.addEventListener('dragleave', leave)
    window.addEventListener('drop', drop)
    return () => {
      window.removeEventListener('dragover', over)
      window.removeEventListener('dragleave', leave)
      window.removeEventListener('drop', drop)
    }
  }, [])
  return dragging
}

export type { FileUIPart }
