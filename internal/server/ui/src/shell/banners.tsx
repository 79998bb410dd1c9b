import { ChevronDown, CloudOff, FlaskConical, OctagonAlert, X } from 'lucide-react'
import { useEffect, useState, type ReactNode } from 'react'
import { IconButton, cx } from '@/components/ui'
import { inline } from '@/lib/format'
import { useApp } from '@/lib/queries'
import type { AppInfo, Diagnostic } from '@/lib/types'

function useOnline(): boolean {
  const [online, setOnline] = useState(navigator.onLine)
  useEffect(() => {
    const update = () => setOnline(navigator.onLine)
    window.addEventListener('online', update)
    window.addEventListener('offline', update)
    return () => {
      window.removeEventListener('online', update)
      window.removeEventListener('offline', update)
    }
  }, [])
  return online
}

function Banner({ tone, icon, children }: { tone: 'warn' | 'bad'; icon: ReactNode; children: ReactNode }) {
  return (
    <div role="status" className={cx('flex items-start gap-2 border-b px-4 py-1.5 text-[0.88rem]', tone === 'warn' ? 'bg-warn-soft text-warn' : 'bg-bad-soft text-bad')}>
      <span className="mt-0.5 shrink-0">{icon}</span>
      <div className="flex min-w-0 flex-1 items-start gap-2">{children}</div>
    </div>
  )
}

/** What the user must know about the application on every page. */
export function Banners({ app }: { app: AppInfo }) {
  const online = useOnline()
  const unreachable = useApp().isError
  const [hidden, setHidden] = useState(() => sessionStorage.getItem('qtype.simulated') === 'hidden')
  const simulated = app.simulated ?? []
  const hide = () => {
    sessionStorage.setItem('qtype.simulated', 'hidden')
    setHidden(true)
  }
  return (
    <>
      {(!online || unreachable) && (
        <Banner tone="bad" icon={<CloudOff aria-hidden size={16} />}>
          <p>{online ? 'The server cannot be reached.' : 'You are offline.'} What is shown may be outdated; the connection is tried again.</p>
        </Banner>
      )}
      {app.reload_error && <ReloadError error={app.reload_error} />}
      {simulated.length > 0 && !hidden && (
        <Banner tone="warn" icon={<FlaskConical aria-hidden size={16} />}>
          <p className="flex-1">
            Answers are simulated by a mock: there are no credentials for {simulated.join(', ')}.
          </p>
          <IconButton small icon={X} label="Hide this note" onClick={hide} className="-my-0.5 size-6 text-warn" />
        </Banner>
      )}
    </>
  )
}

function ReloadError({ error }: { error: NonNullable<AppInfo['reload_error']> }) {
  const [open, setOpen] = useState(false)
  const diagnostics = error.diagnostics ?? []
  return (
    <Banner tone="bad" icon={<OctagonAlert aria-hidden size={16} />}>
      <div className="min-w-0 flex-1">
        <p>
          <strong className="font-semibold">Reload refused.</strong> {error.message}
        </p>
        {open && (
          <pre tabIndex={0} className="mt-1.5 max-h-72 overflow-auto rounded-lg bg-raised p-3 font-mono text-[0.82rem] text-ink">
            {diagnostics.map(diagnosticText).join('\n\n')}
          </pre>
        )}
      </div>
      {diagnostics.length > 0 && (
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="inline-flex items-center gap-1 font-medium underline-offset-2 hover:underline">
          {open ? 'Hide' : 'Show'} diagnostics <ChevronDown aria-hidden size={14} className={open ? 'rotate-180' : ''} />
        </button>
      )}
    </Banner>
  )
}

function diagnosticText(d: Diagnostic | string): string {
  if (typeof d === 'string') return d
  if (d.excerpt) return d.excerpt
  const at = [d.file, d.line, d.column].filter(Boolean).join(':')
  return d.message ? `${d.severity ?? 'error'}${d.code ? `[${d.code}]` : ''} ${at}: ${d.message}` : inline(d)
}
