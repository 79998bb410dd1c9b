import { Menu as MenuIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton, cx } from '@/components/ui'
import { pageOfFlow } from '@/lib/queries'
import { Link, pathOf } from '@/lib/router'
import type { Flow } from '@/lib/types'
import { useShell } from './context'

const views = (flow: Flow, batch: boolean): [string, string][] => {
  const list: [string, string][] = [pageOfFlow(flow) === 'chat' ? ['chat', 'Chat'] : ['form', 'Form']]
  if (batch) list.push(['batch', 'Batch'])
  list.push(['graph', 'Flow'])
  list.push(['history', 'Runs'])
  return list
}

/** The head of a page: its title, and the views of a flow. */
export function FlowHeader({ flow, view, title, children }: { flow?: Flow; view?: string; title?: string; children?: ReactNode }) {
  const { openMenu, app } = useShell()
  const f = app.features
  return (
    <header className="flex min-h-13 flex-wrap items-center gap-x-3 border-b bg-bg px-3 md:px-5">
      <IconButton icon={MenuIcon} label="Menu" className="-ml-1 md:hidden" onClick={openMenu} />
      <div className="min-w-0 flex-1 py-1.5 leading-tight">
        <p className="truncate font-semibold">{title ?? flow?.id}</p>
        {title && flow && <p className="truncate text-[0.8rem] text-dim">{flow.id}</p>}
      </div>
      {children}
      {flow && (
        <nav aria-label="Views of the flow" className="-mb-px flex gap-0.5 self-end max-md:order-last max-md:w-full">
          {views(flow, f?.batch ?? true).map(([page, label]) => (
            <Link
              key={page}
              to={pathOf(page, flow.id)}
              aria-current={view === page ? 'page' : undefined}
              className={cx('border-b-2 px-2.5 py-2.5 text-[0.92rem] max-md:flex-1 max-md:text-center', view === page ? 'border-accent font-medium text-ink' : 'border-transparent text-dim hover:text-ink')}
            >
              {label}
            </Link>
          ))}
        </nav>
      )}
    </header>
  )
}
