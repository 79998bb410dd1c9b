import { memo, useEffect, useState, type AnchorHTMLAttributes, type ReactElement } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { CodeBlock } from './code'

type Plugins = { remark: any[]; rehype: any[] }
let math: Plugins | undefined

// A formula in dollar signs. As in pandoc, blanks inside or a digit behind the last sign mean
// amounts of money.
const dollars = /\$\$[\s\S]+?\$\$|\$(?![\s$])(?:\\.|[^$\n\\])*?(?<![\s\\])\$(?!\d)/

const hasMath = (text: string) => dollars.test(text) || /\\\(|\\\[/.test(text)

/** The plugins for formulas, which are loaded when the first formula is seen. */
function useMath(text: string): Plugins | undefined {
  const needed = hasMath(text)
  const [plugins, setPlugins] = useState(math)
  useEffect(() => {
    if (!needed || plugins) return
    let current = true
    import('@/lib/math').then((m) => {
      math = { remark: [[m.remarkMath, { singleDollarTextMath: true }]], rehype: [[m.rehypeKatex, { throwOnError: false, strict: false }]] }
      if (current) setPlugins(math)
    }, () => undefined)
    return () => {
      current = false
    }
  }, [needed, plugins])
  return needed ? plugins : undefined
}

const anyDollar = new RegExp(`${dollars.source}|\\\\\\$|\\$`, 'g')

function formulas(text: string): string {
  const signs = text.replace(/\\\[([\s\S]+?)\\\]/g, (_, f) => `$$${f}$$`).replace(/\\\(([\s\S]+?)\\\)/g, (_, f) => `$${f.trim()}$`)
  return signs.replace(anyDollar, (m) => (m === '$' ? '\\$' : m)).replace(/^[ \t]*\$\$([^$\n]+)\$\$[ \t]*$/gm, (_, f) => `$$\n${f}\n$$`)
}

/** Writes \( \) and \[ \], which many models use, as the dollar signs of Markdown. Code is not changed. */
export function normalizeMath(text: string): string {
  return text
    .split(/(```[\s\S]*?(?:```|$)|`[^`\n]*`)/)
    .map((part, i) => (i % 2 ? part : formulas(part)))
    .join('')
}

function Anchor({ href = '', children, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement>) {
  if (href.startsWith('#')) {
    const show = () => document.getElementById(href.slice(1))?.scrollIntoView({ block: 'center' })
    return <button type="button" className="text-accent underline" onClick={show}>{children}</button>
  }
  return <a {...rest} href={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>
}

const components: Components = {
  a: ({ node: _, ...props }) => <Anchor {...props} />,
  // Images of other servers would reveal to them that the answer is read.
  img: ({ src, alt }) =>
    typeof src === 'string' && /^(data|blob):/.test(src) ? <img src={src} alt={alt ?? ''} className="max-w-full rounded-lg" /> : <Anchor href={String(src ?? '')}>{alt || 'Image'}</Anchor>,
  pre: ({ children }) => {
    const code = (children as ReactElement<{ className?: string; children?: unknown }>)?.props
    const language = /language-(\S+)/.exec(code?.className ?? '')?.[1]
    return <CodeBlock text={String(code?.children ?? '').replace(/\n$/, '')} language={language} />
  },
  table: ({ node: _, ...props }) => (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label="Table">
      <table {...props} />
    </div>
  ),
}

/** Text in Markdown. Raw HTML is shown as text, addresses with scripts are removed. */
export const Markdown = memo(function Markdown({ text, streaming }: { text: string; streaming?: boolean }) {
  const plugins = useMath(text)
  return (
    <div className={streaming ? 'prose streaming' : 'prose'}>
      <ReactMarkdown remarkPlugins={[remarkGfm, ...(plugins?.remark ?? [])]} rehypePlugins={plugins?.rehype} components={components}>
        {plugins ? normalizeMath(text) : text}
      </ReactMarkdown>
    </div>
  )
})
