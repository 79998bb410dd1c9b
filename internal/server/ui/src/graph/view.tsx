import { Bot, Database, FileText, GitFork, Layers, MessageSquare, Repeat, Search, Wrench, type LucideIcon } from 'lucide-react'
import { useEffect, useMemo, useRef, useState, type RefObject } from 'react'
import { cx } from '@/components/ui'
import { count, duration } from '@/lib/format'
import { layoutGraph, nodeHeight, nodeWidth, type Placed } from '@/lib/layout'
import type { RunState, StepState } from '@/lib/runstate'
import type { Graph, GraphNode } from '@/lib/types'

const icons: [RegExp, LucideIcon][] = [
  [/Agent/, Bot],
  [/Inference|Chat/, MessageSquare],
  [/Prompt|Template|Document|Writer/, FileText],
  [/Tool/, Wrench],
  [/Search|Index|Rerank/, Search],
  [/SQL|Source|Memory/, Database],
  [/Switch|Parallel|InvokeFlow/, GitFork],
  [/Loop|Explode/, Repeat],
]
const iconOf = (type: string) => icons.find(([match]) => match.test(type))?.[1] ?? Layers

interface GraphViewProps {
  graph: Graph
  state?: RunState
  selected?: string
  onSelect: (id: string) => void
}

export function GraphView({ graph, state, selected, onSelect }: GraphViewProps) {
  const layout = useMemo(() => layoutGraph(graph.nodes, graph.edges ?? []), [graph])
  const frame = useRef<HTMLDivElement>(null)
  const zoom = useZoom(frame, layout.width)
  return (
    <div ref={frame} className="overflow-x-auto p-5">
      <div className="relative mx-auto" style={{ width: layout.width, height: layout.height, zoom }}>
        <svg aria-hidden width={layout.width} height={layout.height} className="absolute inset-0 overflow-visible">
          {layout.edges.map(({ from, to }) => (
            <Edge key={`${from.node.id}-${to.node.id}`} from={from} to={to} active={(state?.steps[to.node.id]?.running ?? 0) > 0} />
          ))}
        </svg>
        <ol>
          {layout.nodes.map((p) => (
            <li key={p.node.id}>
              <Node placed={p} step={state?.steps[p.node.id]} selected={p.node.id === selected} onSelect={() => onSelect(p.node.id)} />
            </li>
          ))}
        </ol>
      </div>
    </div>
  )
}

/** How much the graph is made smaller to fit its frame, at most to 65 %. */
function useZoom(frame: RefObject<HTMLDivElement | null>, width: number): number {
  const [zoom, setZoom] = useState(1)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setZoom(Math.max(0.65, Math.min(1, entry.contentRect.width / width))))
    observer.observe(frame.current!)
    return () => observer.disconnect()
  }, [frame, width])
  return zoom
}

function Edge({ from, to, active }: { from: Placed; to: Placed; active: boolean }) {
  const x1 = from.x + nodeWidth / 2
  const y1 = from.y + nodeHeight
  const x2 = to.x + nodeWidth / 2
  const y2 = to.y - 5
  const bend = Math.max(16, (y2 - y1) / 2)
  const color = active ? 'stroke-accent' : 'stroke-line-strong'
  return (
    <g fill="none" className={color} strokeWidth={active ? 2.5 : 1.5}>
      <path d={`M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`} />
      <path d={`M${x2 - 4.5},${y2 - 5} L${x2},${y2} L${x2 + 4.5},${y2 - 5}`} />
    </g>
  )
}

function Node({ placed: { node, x, y }, step, selected, onSelect }: { placed: Placed; step?: StepState; selected: boolean; onSelect: () => void }) {
  const Icon = iconOf(node.type)
  const running = (step?.running ?? 0) > 0
  return (
    <button
      type="button"
      data-node={node.id}
      aria-pressed={selected}
      onClick={onSelect}
      style={{ left: x, top: y, width: nodeWidth, height: nodeHeight }}
      className={cx(
        'absolute flex flex-col justify-center rounded-xl border px-3 text-left transition-[background-color,border-color,box-shadow]',
        running ? 'border-accent bg-accent-soft shadow-pop' : 'bg-raised',
        !running && (step?.failed ? 'border-bad' : step?.done ? 'border-accent' : 'border-line-strong/70'),
        selected && 'ring-2 ring-accent ring-offset-2 ring-offset-bg',
      )}
    >
      <span className="flex items-center gap-2 font-semibold">
        <Icon aria-hidden size={16} className={cx('shrink-0 text-accent', running && 'animate-pulse')} />
        <span className="truncate">{node.label || node.id}</span>
      </span>
      <span className="truncate text-[0.8rem] text-dim">{summary(node)}</span>
      <span className="truncate text-[0.8rem] tabular-nums">{step ? progress(step) : <span className="text-dim">{node.uses?.map((u) => u.id).join(', ')}</span>}</span>
    </button>
  )
}

const summary = (n: GraphNode) => n.type

/** The counts of a step in words, so that colors are not needed to read them. */
function progress(s: StepState) {
  const parts = []
  if (s.running) parts.push(`${count(s.running)} running`)
  if (s.done) parts.push(`${count(s.done)} done`)
  if (s.failed) parts.push(`${count(s.failed)} failed`)
  if (s.done + s.failed > 0 && s.ms > 0) parts.push(`${duration(s.ms / (s.done + s.failed))} each`)
  return parts.join(' · ')
}
