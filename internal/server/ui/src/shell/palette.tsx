import { Command } from 'cmdk'
import { useEffect, useState } from 'react'
import { GitBranch, ListTree, MessageSquare, MessageSquarePlus, Moon, SquarePen, Sun, SunMoon, Table2, type LucideIcon } from 'lucide-react'
import { Dialog } from '@/components/ui'
import { pageOfFlow, useSessions } from '@/lib/queries'
import { navigate, pathOf } from '@/lib/router'
import { setTheme } from '@/lib/theme'
import { useShell } from './context'

/** Calls run when the key is pressed with Ctrl or ⌘. */
export function useShortcut(key: string, run: () => void): void {
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if ((e.metaKey || e.ctrlKey) && !e.shiftKey && !e.altKey && e.key.toLowerCase() === key) {
        e.preventDefault()
        run()
      }
    }
    window.addEventListener('keydown', press)
    return () => window.removeEventListener('keydown', press)
  })
}

/** All pages, conversations and settings, to be found by typing. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Commands" hideTitle>
      {open && <Commands onClose={onClose} />}
    </Dialog>
  )
}

function Commands({ onClose }: { onClose: () => void }) {
  const { flows } = useShell()
  const [search, setSearch] = useState('')
  const sessions = useSessions(search).sessions ?? []
  const go = (path: string) => () => {
    onClose()
    navigate(path)
  }
  const chats = flows.filter((f) => pageOfFlow(f) === 'chat')
  const theme = (t: 'light' | 'dark' | 'system') => () => {
    setTheme(t)
    onClose()
  }
  return (
    <Command label="Commands" loop>
      <Command.Input autoFocus value={search} onValueChange={setSearch} placeholder="Search commands and conversations" className="w-full border-b bg-transparent px-5 py-3.5 text-base outline-none" />
      <Command.List className="max-h-[55vh] overflow-auto p-2">
        <Command.Empty className="px-3 py-6 text-center text-dim">Nothing found.</Command.Empty>
        <Group heading="Start">
          {chats.map((f) => (
            <Item key={f.id} icon={MessageSquarePlus} label={`New conversation: ${f.id}`} onSelect={go(pathOf('chat', f.id))} />
          ))}
          {flows.filter((f) => pageOfFlow(f) === 'form').map((f) => (
            <Item key={f.id} icon={SquarePen} label={`Form: ${f.id}`} onSelect={go(pathOf('form', f.id))} />
          ))}
        </Group>
        <Group heading="Conversations">
          {sessions.slice(0, 8).map((s) => (
            <Item key={s.id} icon={MessageSquare} label={s.title || s.id} value={`${s.id} ${s.title}`} onSelect={go(pathOf('chat', s.flow ?? chats[0]?.id ?? '', s.id))} />
          ))}
        </Group>
        <Group heading="Views">
          {flows.flatMap((f) => [
            <Item key={`${f.id}b`} icon={Table2} label={`Batch: ${f.id}`} onSelect={go(pathOf('batch', f.id))} />,
            <Item key={`${f.id}g`} icon={GitBranch} label={`Flow: ${f.id}`} onSelect={go(pathOf('graph', f.id))} />,
            <Item key={`${f.id}h`} icon={ListTree} label={`Runs: ${f.id}`} onSelect={go(pathOf('history', f.id))} />,
          ])}
        </Group>
        <Group heading="Colors">
          <Item icon={Sun} label="Light" onSelect={theme('light')} />
          <Item icon={Moon} label="Dark" onSelect={theme('dark')} />
          <Item icon={SunMoon} label="Like the system" onSelect={theme('system')} />
        </Group>
      </Command.List>
    </Command>
  )
}

function Group({ heading, children }: { heading: string; children: React.ReactNode }) {
  return (
    <Command.Group heading={heading} className="[&_[cmdk-group-heading]]:px-3 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-[0.76rem] [&_[cmdk-group-heading]]:font-semibold [&_[cmdk-group-heading]]:text-dim">
      {children}
    </Command.Group>
  )
}

function Item({ icon: Icon, label, value, onSelect }: { icon: LucideIcon; label: string; value?: string; onSelect: () => void }) {
  return (
    <Command.Item value={value ?? label} onSelect={onSelect} className="flex cursor-pointer items-center gap-2.5 rounded-lg px-3 py-2 data-[selected=true]:bg-accent-soft">
      <Icon aria-hidden size={16} className="text-dim" />
      <span className="truncate">{label}</span>
    </Command.Item>
  )
}
