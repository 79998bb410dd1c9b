import type { GraphNode } from './types'

/** Where a node is drawn, in pixels. */
export interface Placed {
  node: GraphNode
  x: number
  y: number
}
export interface Layout {
  nodes: Placed[]
  edges: { from: Placed; to: Placed }[]
  width: number
  height: number
}

export const nodeWidth = 232
export const nodeHeight = 78
const gapX = 28
const gapY = 46

/** Places nodes in layers: each is below all that it depends on. Edges of a cycle do not move nodes. */
export function layoutGraph(nodes: GraphNode[], edges: { from: string; to: string }[]): Layout {
  const layer = layersOf(nodes, edges)
  const rows: GraphNode[][] = []
  for (const n of nodes) (rows[layer.get(n.id)!] ??= []).push(n)
  const columns = Math.max(1, ...rows.map((r) => r?.length ?? 0))
  const width = columns * nodeWidth + (columns - 1) * gapX
  const placed = new Map<string, Placed>()
  rows.forEach((row, y) => {
    const rowWidth = row.length * nodeWidth + (row.length - 1) * gapX
    row.forEach((node, i) => placed.set(node.id, { node, x: (width - rowWidth) / 2 + i * (nodeWidth + gapX), y: y * (nodeHeight + gapY) }))
  })
  return {
    nodes: [...placed.values()],
    edges: edges.flatMap((e) => {
      const from = placed.get(e.from)
      const to = placed.get(e.to)
      return from && to ? [{ from, to }] : []
    }),
    width,
    height: rows.length * nodeHeight + Math.max(0, rows.length - 1) * gapY,
  }
}

function layersOf(nodes: GraphNode[], edges: { from: string; to: string }[]): Map<string, number> {
  const position = new Map(nodes.map((n, i) => [n.id, i]))
  const layer = new Map(nodes.map((n) => [n.id, 0]))
  const forward = edges.filter((e) => position.has(e.from) && position.has(e.to) && position.get(e.from)! < position.get(e.to)!)
  for (const n of nodes) {
    for (const e of forward) if (e.to === n.id) layer.set(n.id, Math.max(layer.get(n.id)!, layer.get(e.from)! + 1))
  }
  return layer
}
