import { useQueryClient } from '@tanstack/react-query'
import { Hand } from 'lucide-react'
import { useState } from 'react'
import { RequestCard } from '@/components/request'
import { Dialog } from '@/components/ui'
import { decide } from '@/lib/api'
import { useApprovals } from '@/lib/queries'

/** The calls of other callers that wait for a role of the user; nothing if there are none. */
export function Approvals() {
  const client = useQueryClient()
  const [open, setOpen] = useState(false)
  const list = useApprovals().data?.approvals ?? []
  if (list.length === 0 && !open) return null
  return (
    <>
      <button type="button" onClick={() => setOpen(true)} className="mx-3 mb-2 flex items-center gap-2 rounded-lg border border-warn px-3 py-2 text-left hover:bg-sunken">
        <Hand aria-hidden size={15} className="shrink-0 text-warn" />
        {list.length === 1 ? '1 call waits for your decision' : `${list.length} calls wait for your decision`}
      </button>
      <Dialog open={open} onClose={() => setOpen(false)} title="Approvals" description="Calls of tools that a role of yours decides about.">
        <div className="flex min-h-0 flex-col gap-4 overflow-auto px-5 pb-5">
          {list.length === 0 && <p className="text-dim">No call waits for your decision.</p>}
          {list.map((a) => (
            <div key={`${a.run} ${a.request.id}`} className="flex flex-col gap-1.5">
              <p className="text-[0.85rem] text-dim">
                {a.caller} · {a.flow}
              </p>
              <RequestCard
                request={{ ...a.request, by: null }}
                onAnswer={async (answer) => {
                  await decide(a.run, answer)
                  await client.invalidateQueries({ queryKey: ['approvals'] })
                }}
              />
            </div>
          ))}
        </div>
      </Dialog>
    </>
  )
}
