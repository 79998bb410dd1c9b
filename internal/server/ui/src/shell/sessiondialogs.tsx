import { useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { ProblemCard } from '@/components/problem'
import { Button, Dialog } from '@/components/ui'
import { deleteSession, renameSession } from '@/lib/api'
import { clearPending, forgetMessages } from '@/chat/draft'

interface Target {
  id: string
  title?: string | null
}

/** Changes the title of a conversation. */
export function RenameDialog({ session, onClose }: { session: Target; onClose: () => void }) {
  const client = useQueryClient()
  const [title, setTitle] = useState(session.title ?? '')
  const [error, setError] = useState<unknown>()
  const submit = async (e: FormEvent) => {
    e.preventDefault()
    try {
      await renameSession(session.id, title.trim())
      await client.invalidateQueries({ queryKey: ['sessions'] })
      void client.invalidateQueries({ queryKey: ['session', session.id] })
      onClose()
    } catch (err) {
      setError(err)
    }
  }
  return (
    <Dialog open onClose={onClose} title="Rename conversation">
      <form onSubmit={submit} className="flex flex-col gap-4 px-5 pb-5">
        <label>
          <span className="mb-1 block font-medium">Title</span>
          <input className="field" autoFocus value={title} onChange={(e) => setTitle(e.target.value)} />
        </label>
        {error !== undefined && <ProblemCard error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">Rename</Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Deletes a conversation after confirmation. */
export function DeleteDialog({ session, onClose, onDeleted }: { session: Target; onClose: () => void; onDeleted: () => void }) {
  const client = useQueryClient()
  const [error, setError] = useState<unknown>()
  const remove = async () => {
    try {
      await deleteSession(session.id)
      clearPending(session.id)
      forgetMessages(session.id)
      client.removeQueries({ queryKey: ['session', session.id] })
      await client.invalidateQueries({ queryKey: ['sessions'] })
      onClose()
      onDeleted()
    } catch (err) {
      setError(err)
    }
  }
  return (
    <Dialog open onClose={onClose} title="Delete conversation" description={`"${session.title || session.id}" and its messages in all memories are deleted. This cannot be undone.`}>
      <div className="flex flex-col gap-4 px-5 pt-2 pb-5">
        {error !== undefined && <ProblemCard error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="danger" onClick={() => void remove()}>Delete</Button>
        </div>
      </div>
    </Dialog>
  )
}
