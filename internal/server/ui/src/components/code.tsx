import { createElement, useEffect, useState, type ReactNode } from 'react'
import { CopyButton } from './copy'

type Node = { type: string; value?: string; tagName?: string; properties?: { className?: string[] }; children?: Node[] }

function render(nodes: Node[]): ReactNode[] {
  return nodes.map((n, i) =>
    n.type === 'text' ? n.value : createElement('span', { key: i, className: n.properties?.className?.join(' ') }, render(n.children ?? [])),
  )
}

/** Highlighted code; the text itself until the highlighter is loaded and for other languages. */
export function Code({ text, language }: { text: string; language?: string }) {
  const [nodes, setNodes] = useState<ReactNode[]>()
  useEffect(() => {
    if (!language || text.length > 50_000) return
    let current = true
    import('@/lib/highlight')
      .then(({ highlight }) => {
        const tree = highlight(text, language)
        if (current) setNodes(tree ? render(tree as Node[]) : undefined)
      })
      .catch(() => undefined)
    return () => {
      current = false
    }
  }, [text, language])
  return <code className="code">{nodes ?? text}</code>
}

/** A block of code with its language and a button that copies it. */
export function CodeBlock({ text, language, label }: { text: string; language?: string; label?: string }) {
  return (
    <div className="overflow-hidden rounded-lg border bg-panel">
      <div className="flex items-center justify-between border-b py-0.5 pr-1 pl-3 text-[0.78rem] text-dim">
        <span>{label ?? language ?? 'text'}</span>
        <CopyButton text={text} label="Copy code" />
      </div>
      <pre tabIndex={0} aria-label={`Code, ${label ?? language ?? 'text'}`} className="max-h-[32rem] overflow-auto p-3">
        <Code text={text} language={language} />
      </pre>
    </div>
  )
}
