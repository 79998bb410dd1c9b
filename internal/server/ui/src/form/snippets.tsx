import { Tabs } from 'radix-ui'
import { CodeBlock } from '@/components/code'
import { apiURL } from '@/lib/base'
import { snippetsOf } from '@/lib/snippets'
import type { Flow } from '@/lib/types'
import { useShell } from '@/shell/context'

const languages = [
  ['curl', 'curl', 'bash'],
  ['python', 'Python', 'python'],
  ['javascript', 'JavaScript', 'javascript'],
] as const

/** The request of the form as programs, to copy. */
export function Snippets({ flow, body }: { flow: Flow; body: unknown }) {
  const { app } = useShell()
  const url = apiURL((flow.endpoints.rest ?? `/flows/${encodeURIComponent(flow.id)}`).replace(/^\//, ''))
  const snippets = snippetsOf(url, body, app.authentication !== 'none')
  return (
    <Tabs.Root defaultValue="curl" className="mt-3">
      <Tabs.List aria-label="Language" className="mb-2 flex gap-1">
        {languages.map(([key, label]) => (
          <Tabs.Trigger key={key} value={key} className="rounded-md px-2.5 py-1 text-[0.88rem] text-dim hover:bg-sunken data-[state=active]:bg-accent-soft data-[state=active]:font-medium data-[state=active]:text-accent">
            {label}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      {languages.map(([key, label, language]) => (
        <Tabs.Content key={key} value={key}>
          <CodeBlock text={snippets[key]} language={language} label={label} />
        </Tabs.Content>
      ))}
    </Tabs.Root>
  )
}
