import { useSyncExternalStore } from 'react'
import { newID } from '@/lib/format'
import { navigate, pathOf } from '@/lib/router'

// The id of the conversation that a flow's start page would begin.
const drafts = new Map<string, string>()
const unsent = new Set<string>()
const listeners = new Set<() => void>()

function draftOf(flow: string): string {
  let id = drafts.get(flow)
  if (!id) {
    id = newID()
    drafts.set(flow, id)
    unsent.add(id)
  }
  return id
}

export const useDraft = (flow: string) =>
  useSyncExternalStore(
    (l) => (listeners.add(l), () => listeners.delete(l)),
    () => draftOf(flow),
  )

/** Reports whether the server cannot know the conversation yet. */
export const isUnsent = (id: string) => unsent.has(id)

/** Records that the conversation was left, so that it is read from the server next time. */
export const markSent = (id: string) => void unsent.delete(id)

function retire(flow: string): void {
  drafts.delete(flow)
  listeners.forEach((l) => l())
}

/** Gives the conversation its address when its first message is sent. */
export function keepDraft(flow: string, id: string): void {
  if (drafts.get(flow) !== id) return
  navigate(pathOf('chat', flow, id), true)
  retire(flow)
}

/** Shows an empty conversation. */
export function newConversation(flow: string): void {
  retire(flow)
  navigate(pathOf('chat', flow))
  setTimeout(() => document.getElementById('composer')?.focus())
}
