import { lazy, Suspense, useEffect, useState } from 'react'
import { ProblemCard } from '@/components/problem'
import { Button, Dialog, Skeleton } from '@/components/ui'
import { useRejected } from '@/lib/auth'
import { asProblem } from '@/lib/problem'
import { pageOfFlow, useApp, useFlows } from '@/lib/queries'
import { Link, pathOf, useRoute, type Route } from '@/lib/router'
import type { AppInfo, Flow } from '@/lib/types'
import { ChatRoute } from '@/chat/route'
import { Banners } from './banners'
import { FlowHeader } from './header'
import { Home } from './home'
import { KeyScreen } from './key'
import { Palette, useShortcut } from './palette'
import { Sidebar } from './sidebar'
import { ShellContext } from './context'

const FormPage = lazy(() => import('@/form/page'))
const BatchPage = lazy(() => import('@/batch/page'))
const GraphPage = lazy(() => import('@/graph/page'))
const HistoryPage = lazy(() => import('@/trace/history'))
const TracePage = lazy(() => import('@/trace/page'))

export function App() {
  const rejected = useRejected()
  const app = useApp()
  const flows = useFlows()
  if (rejected) return <KeyScreen />
  const error = app.error ?? flows.error
  if (error && !(app.data && flows.data)) {
    return (
      <main className="mx-auto mt-[15vh] max-w-lg px-4">
        <h1 className="sr-only">The application cannot be shown</h1>
        <ProblemCard error={error} title={asProblem(error).status === 0 ? 'The server cannot be reached' : undefined} onRetry={() => (void app.refetch(), void flows.refetch())} />
      </main>
    )
  }
  if (!app.data || !flows.data) return <Loading />
  return <Shell app={app.data} flows={flows.data} />
}

function Loading() {
  return (
    <div className="grid h-full md:grid-cols-[17rem_1fr]">
      <div className="hidden border-r bg-panel p-4 md:block">
        <Skeleton lines={6} />
      </div>
      <main className="p-6">
        <h1 className="sr-only">Loading</h1>
        <Skeleton lines={4} className="mx-auto mt-16 max-w-xl" />
      </main>
    </div>
  )
}

function Shell({ app, flows }: { app: AppInfo; flows: Flow[] }) {
  const route = useRoute()
  const [menu, setMenu] = useState(false)
  const [palette, setPalette] = useState(false)
  useShortcut('k', () => setPalette((open) => !open))
  const path = JSON.stringify(route)
  useEffect(() => setMenu(false), [path])
  useEffect(() => {
    document.title = titleOf(route, app)
  }, [path, app.id])
  const sidebar = <Sidebar app={app} flows={flows} route={route} onPalette={() => setPalette(true)} />
  return (
    <ShellContext value={{ app, flows, openMenu: () => setMenu(true), openPalette: () => setPalette(true) }}>
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded-md focus:bg-raised focus:p-2" onClick={(e) => (e.preventDefault(), document.getElementById('main')?.focus())}>
        Skip to content
      </a>
      <div className="grid h-full min-h-0 grid-cols-1 md:grid-cols-[17rem_minmax(0,1fr)]">
        <div className="hidden min-h-0 border-r bg-panel md:block">{sidebar}</div>
        <div className="flex min-h-0 min-w-0 flex-col">
          <Banners app={app} />
          <Suspense fallback={<Skeleton lines={5} className="mx-auto mt-10 w-full max-w-2xl px-4" />}>
            <Page route={route} />
          </Suspense>
        </div>
      </div>
      <Dialog side="left" open={menu} onClose={() => setMenu(false)} title="Menu" hideTitle>
        {sidebar}
      </Dialog>
      <Palette open={palette} onClose={() => setPalette(false)} />
    </ShellContext>
  )
}

function titleOf(route: Route, app: AppInfo): string {
  if ('flow' in route) return `${route.flow} · ${app.id}`
  return route.page === 'trace' ? `Trace · ${app.id}` : app.id
}

function Page({ route }: { route: Route }) {
  const flows = useFlows().data ?? []
  if (route.page === 'home') return <Home />
  if (route.page === 'trace') return <TracePage key={route.run} run={route.run} />
  const flow = 'flow' in route ? flows.find((f) => f.id === route.flow) : undefined
  if (!flow) return <Missing what={'flow' in route ? `The application has no flow "${route.flow}".` : 'This page does not exist.'} />
  switch (route.page) {
    case 'chat':
      return pageOfFlow(flow) === 'chat' ? <ChatRoute flow={flow} session={route.session} /> : <FormPage key={flow.id} flow={flow} />
    case 'form':
      return <FormPage key={flow.id} flow={flow} />
    case 'batch':
      return <BatchPage key={flow.id} flow={flow} />
    case 'graph':
      return <GraphPage key={flow.id} flow={flow} />
    case 'history':
      return <HistoryPage key={flow.id} flow={flow} />
  }
  return null
}

function Missing({ what }: { what: string }) {
  return (
    <>
      <FlowHeader title="Not found" />
      <main id="main" tabIndex={-1} className="mx-auto mt-[12vh] max-w-md px-4 text-center outline-none">
        <h1 className="text-xl font-semibold">Nothing here</h1>
        <p className="mt-2 text-dim">{what}</p>
        <Link to={pathOf()} className="mt-4 inline-block">
          <Button tabIndex={-1}>Go to the start page</Button>
        </Link>
      </main>
    </>
  )
}
