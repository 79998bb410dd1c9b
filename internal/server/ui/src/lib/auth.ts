import { useSyncExternalStore } from 'react'

const storageKey = 'qtype.key'
const listeners = new Set<() => void>()
let rejected = false

/** The API key of this tab, empty without one. */
export const apiKey = (): string => sessionStorage.getItem(storageKey) ?? ''

/** Stores the key for this tab; an empty one removes it. */
export function setAPIKey(key: string): void {
  if (key) sessionStorage.setItem(storageKey, key)
  else sessionStorage.removeItem(storageKey)
  markRejected(false)
}

/** Records whether the server rejected the last request for its missing or wrong key. */
export function markRejected(value: boolean): void {
  if (rejected === value) return
  rejected = value
  listeners.forEach((l) => l())
}

/** Reports whether the server rejects the requests of this tab. */
export function useRejected(): boolean {
  return useSyncExternalStore(
    (l) => (listeners.add(l), () => listeners.delete(l)),
    () => rejected,
  )
}

/** The headers that identify the caller. */
export function authHeaders(): Record<string, string> {
  const key = apiKey()
  return key ? { Authorization: `Bearer ${key}` } : {}
}
