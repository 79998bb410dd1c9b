import { AlertTriangle, RotateCcw } from 'lucide-react'
import type { ReactNode } from 'react'
import { adviceOf, asProblem } from '@/lib/problem'
import { Button } from './ui'

/** What happened, what to do, and a way to retry. */
export function ProblemCard({ error, title, onRetry, children }: { error: unknown; title?: string; onRetry?: () => void; children?: ReactNode }) {
  const p = asProblem(error)
  return (
    <div role="alert" className="rounded-xl border border-bad/50 bg-bad-soft p-3.5">
      <div className="flex gap-2.5">
        <AlertTriangle aria-hidden size={18} className="mt-0.5 shrink-0 text-bad" />
        <div className="min-w-0 flex-1">
          <p className="font-semibold text-bad">{title ?? p.title}</p>
          {p.detail && <p className="mt-0.5 break-words">{p.detail}</p>}
          {p.fields.length > 0 && (
            <ul className="mt-1.5 list-disc pl-5">
              {p.fields.map((f) => (
                <li key={f.pointer + f.detail}>
                  <code className="font-mono text-[0.85rem]">{f.pointer}</code> {f.detail}
                </li>
              ))}
            </ul>
          )}
          <p className="mt-1.5 text-[0.9rem]">{adviceOf(p)}</p>
          <div className="mt-2.5 flex flex-wrap gap-2 empty:hidden">
            {onRetry && (
              <Button small icon={RotateCcw} onClick={onRetry}>
                Retry
              </Button>
            )}
            {children}
          </div>
        </div>
      </div>
    </div>
  )
}
