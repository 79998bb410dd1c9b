/** The kinds of blocks of a call, with their names and colors. */
export const kinds: Record<string, { label: string; plural: string; color: string }> = {
  system: { label: 'System message', plural: 'system', color: 'bg-k-system' },
  pinned: { label: 'Pinned text', plural: 'pinned', color: 'bg-k-pinned' },
  summary: { label: 'Summary', plural: 'summary', color: 'bg-k-summary' },
  variables: { label: 'Variables', plural: 'variables', color: 'bg-k-variables' },
  retrieval: { label: 'Earlier, similar messages', plural: 'retrieved', color: 'bg-k-retrieval' },
  messages: { label: 'Messages', plural: 'messages', color: 'bg-k-messages' },
}
export const kindOf = (kind: string) => kinds[kind] ?? { label: kind, plural: kind, color: 'bg-k-system' }
