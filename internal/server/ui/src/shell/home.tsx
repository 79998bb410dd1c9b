import { ArrowRight, FileInput, MessageSquare } from 'lucide-react'
import { pageOfFlow } from '@/lib/queries'
import { Link, navigate, pathOf } from '@/lib/router'
import { humanize } from '@/lib/format'
import { setPrompt } from '@/chat/draft'
import { useShell } from './context'
import { FlowHeader } from './header'

/** What the application does, its flows, and examples to start with. */
export function Home() {
  const { app, flows } = useShell()
  const examples = flows.flatMap((f) => (f.examples ?? []).map((text) => ({ flow: f, text }))).slice(0, 3)
  const start = (e: (typeof examples)[number]) => {
    setPrompt(e.flow.id, e.text)
    navigate(pathOf(pageOfFlow(e.flow), e.flow.id))
  }
  return (
    <>
      <FlowHeader title={humanize(app.id)} />
      <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-auto outline-none">
        <div className="mx-auto max-w-3xl px-5 pt-[9vh] pb-16">
          <h1 className="text-2xl font-semibold tracking-tight">{humanize(app.id)}</h1>
          {app.description && <p className="mt-2 max-w-xl text-[1.05rem] text-dim">{app.description}</p>}
          <div className="mt-8 grid gap-3 sm:grid-cols-2">
            {flows.map((f) => {
              const chat = pageOfFlow(f) === 'chat'
              const Icon = chat ? MessageSquare : FileInput
              return (
                <Link key={f.id} to={pathOf(pageOfFlow(f), f.id)} className="card group block p-4 hover:border-accent">
                  <span className="flex items-center gap-2 font-semibold">
                    <Icon aria-hidden size={17} className="text-accent" />
                    <span className="min-w-0 truncate">{f.id}</span>
                    <ArrowRight aria-hidden size={16} className="ml-auto text-dim transition-transform group-hover:translate-x-0.5" />
                  </span>
                  <span className="mt-1 line-clamp-2 block text-dim">{f.description || (chat ? 'A conversation' : 'A form')}</span>
                </Link>
              )
            })}
          </div>
          {examples.length > 0 && (
            <>
              <h2 className="eyebrow mt-9">Examples</h2>
              <ul className="mt-2 flex flex-col gap-2">
                {examples.map((e) => (
                  <li key={e.flow.id + e.text}>
                    <button type="button" onClick={() => start(e)} className="w-full rounded-xl border bg-raised px-4 py-2.5 text-left hover:border-accent">
                      {e.text} <span className="text-[0.82rem] text-dim">in {e.flow.id}</span>
                    </button>
                  </li>
                ))}
              </ul>
            </>
          )}
        </div>
      </main>
    </>
  )
}
