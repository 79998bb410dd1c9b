import { useQueryClient } from '@tanstack/react-query'
import { Download, FileInput, LogOut, MessageSquare, Moon, MoreHorizontal, Pencil, Plus, Search, Sun, Trash2, Workflow } from 'lucide-react'
import { useDeferredValue, useMemo, useState } from 'react'
import { ProblemCard } from '@/components/problem'
import { IconButton, Menu, Skeleton, Tip, cx } from '@/components/ui'
import { exportSession, signOut } from '@/lib/api'
import { download } from '@/lib/download'
import { ago, dayOf, humanize } from '@/lib/format'
import { pageOfFlow, useSessions } from '@/lib/queries'
import { Link, navigate, pathOf, type Route } from '@/lib/router'
import { setTheme, useTheme } from '@/lib/theme'
import type { AppInfo, Flow, SessionInfo } from '@/lib/types'
import { newConversation } from '@/chat/route'
import { Approvals } from './approvals'
import { DeleteDialog, RenameDialog } from './sessiondialogs'

interface SidebarProps {
  app: AppInfo
  flows: Flow[]
  route: Route
  onPalette: () => void
}

/** The conversations and the flows of the application. */
export function Sidebar({ app, flows, route, onPalette }: SidebarProps) {
  const chats = flows.filter((f) => pageOfFlow(f) === 'chat')
  const current = 'flow' in route ? chats.find((f) => f.id === route.flow) : undefined
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex items-center gap-2 px-3 pt-3">
        <Link to="" className="min-w-0 flex-1 truncate rounded-md px-1 font-semibold">
          {humanize(app.id)}
        </Link>
        <ThemeButton />
        <Tip label="Commands">
          <button type="button" onClick={onPalette} aria-label="Commands" className="rounded-md border border-line-strong/60 bg-raised px-1.5 py-0.5 text-[0.76rem] text-dim">
            {/Mac|iPhone|iPad/.test(navigator.platform) ? '⌘K' : 'Ctrl K'}
          </button>
        </Tip>
      </div>
      {chats.length > 0 && <Conversations flow={current ?? chats[0]} route={route} />}
      <FlowList flows={flows} route={route} grow={chats.length === 0} />
      {app.authentication === 'oidc' && <Approvals />}
      <Footer app={app} />
    </div>
  )
}

function ThemeButton() {
  useTheme()
  const isDark = document.documentElement.dataset.theme === 'dark'
  return <IconButton small icon={isDark ? Sun : Moon} label={isDark ? 'Light colors' : 'Dark colors'} onClick={() => setTheme(isDark ? 'light' : 'dark')} />
}

function Conversations({ flow, route }: { flow: Flow; route: Route }) {
  const [q, setQ] = useState('')
  const sessions = useSessions(useDeferredValue(q.trim()))
  const [renaming, setRenaming] = useState<SessionInfo>()
  const [deleting, setDeleting] = useState<SessionInfo>()
  const groups = useMemo(() => byDay(sessions.sessions ?? []), [sessions.sessions])
  const active = route.page === 'chat' ? route.session : undefined
  return (
    <section aria-label="Conversations" className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-col gap-2 p-3">
        <button type="button" onClick={() => newConversation(flow.id)} className="flex h-9 items-center justify-center gap-1.5 rounded-lg bg-accent font-medium text-on-accent hover:bg-accent-hover">
          <Plus aria-hidden size={17} /> New conversation
        </button>
        <label className="relative block">
          <span className="sr-only">Search conversations</span>
          <Search aria-hidden size={15} className="absolute top-1/2 left-2.5 -translate-y-1/2 text-dim" />
          <input type="search" value={q} onChange={(e) => setQ(e.target.value)} placeholder="Search conversations" className="field h-9 pl-8" />
        </label>
      </div>
      <div className="min-h-0 flex-1 overflow-auto px-2 pb-2">
        {sessions.isPending && <Skeleton lines={5} className="p-2" />}
        {sessions.error && <ProblemCard error={sessions.error} title="Conversations cannot be read" onRetry={() => sessions.refetch()} />}
        {sessions.data && groups.length === 0 && <p className="px-2 py-3 text-[0.9rem] text-dim">{q ? 'No conversation matches.' : 'No conversations yet.'}</p>}
        {groups.map(([day, list]) => (
          <div key={day}>
            <h2 className="eyebrow px-2 pt-2 pb-1">{day}</h2>
            <ul>
              {list.map((s) => (
                <SessionItem key={s.id} session={s} flow={s.flow || flow.id} active={s.id === active} onRename={() => setRenaming(s)} onDelete={() => setDeleting(s)} />
              ))}
            </ul>
          </div>
        ))}
        {sessions.hasNextPage && (
          <button type="button" onClick={() => void sessions.fetchNextPage()} className="w-full rounded-lg px-2 py-1.5 text-left text-[0.88rem] text-accent hover:bg-sunken">
            Show older conversations
          </button>
        )}
      </div>
      {renaming && <RenameDialog session={renaming} onClose={() => setRenaming(undefined)} />}
      {deleting && <DeleteDialog session={deleting} onClose={() => setDeleting(undefined)} onDeleted={() => deleting.id === active && navigate(pathOf('chat', flow.id))} />}
    </section>
  )
}

function byDay(sessions: SessionInfo[]): [string, SessionInfo[]][] {
  const groups = new Map<string, SessionInfo[]>()
  for (const s of sessions) groups.set(dayOf(s.updated), [...(groups.get(dayOf(s.updated)) ?? []), s])
  return [...groups]
}

interface SessionItemProps {
  session: SessionInfo
  flow: string
  active: boolean
  onRename: () => void
  onDelete: () => void
}
function SessionItem({ session: s, flow, active, onRename, onDelete }: SessionItemProps) {
  const client = useQueryClient()
  const save = async () => {
    download(`${s.id}.jsonl`, await exportSession(s.id), 'application/jsonl')
    void client.invalidateQueries({ queryKey: ['sessions'] })
  }
  return (
    <li className={cx('group flex items-center rounded-lg', active ? 'bg-accent-soft' : 'hover:bg-sunken')}>
      <Link to={pathOf('chat', flow, s.id)} aria-current={active ? 'page' : undefined} className="min-w-0 flex-1 rounded-lg px-2 py-1.5">
        <span className={cx('block truncate', active && 'font-medium')}>{s.title || s.id}</span>
        <span className="block truncate text-[0.78rem] text-dim">
          {ago(s.updated)}
          {s.messages ? ` · ${s.messages} messages` : ''}
        </span>
      </Link>
      <Menu
        trigger={<IconButton small icon={MoreHorizontal} label={`Actions for ${s.title || s.id}`} className="mr-1 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 data-[state=open]:opacity-100 pointer-coarse:opacity-100" />}
        items={[
          { label: 'Rename', icon: Pencil, onSelect: onRename },
          { label: 'Export', icon: Download, onSelect: () => void save() },
          { label: 'Delete', icon: Trash2, danger: true, onSelect: onDelete },
        ]}
      />
    </li>
  )
}

function FlowList({ flows, route, grow }: { flows: Flow[]; route: Route; grow: boolean }) {
  return (
    <nav aria-label="Flows" className={cx('overflow-auto border-t px-2 py-2', grow ? 'mt-3 flex-1' : 'max-h-[38%]')}>
      <h2 className="eyebrow px-2 pb-1">Flows</h2>
      <ul>
        {flows.map((f) => {
          const chat = pageOfFlow(f) === 'chat'
          const active = 'flow' in route && route.flow === f.id
          const Icon = chat ? MessageSquare : FileInput
          return (
            <li key={f.id}>
              <Link to={pathOf(pageOfFlow(f), f.id)} aria-current={active ? 'page' : undefined} className={cx('flex items-center gap-2 rounded-lg px-2 py-1.5', active ? 'bg-accent-soft font-medium' : 'hover:bg-sunken')}>
                <Icon aria-hidden size={15} className="shrink-0 text-dim" />
                <span className="min-w-0 flex-1 truncate">{f.id}</span>
                <span className="text-[0.78rem] text-dim">{chat ? 'chat' : 'form'}</span>
              </Link>
            </li>
          )
        })}
      </ul>
    </nav>
  )
}

function Footer({ app }: { app: AppInfo }) {
  return (
    <div className="flex items-center gap-2 border-t px-4 py-2 text-[0.8rem] text-dim">
      <Workflow aria-hidden size={14} />
      <span className="truncate">qtype {app.version}</span>
      {app.principal && (
        <>
          <span className="ml-auto truncate">{app.principal}</span>
          <IconButton small icon={LogOut} label="Sign out" className="-my-1 -mr-1.5" onClick={() => void signOut()} />
        </>
      )}
    </div>
  )
}
