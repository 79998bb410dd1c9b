import { useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from 'react'
import { baseURL } from './base'

/** The pages of the application. The Go package ui serves the same list. */
export type Route =
  | { page: 'home' }
  | { page: 'chat'; flow: string; session?: string }
  | { page: 'form' | 'batch' | 'graph' | 'history'; flow: string }
  | { page: 'trace'; run: string }
  | { page: 'missing'; path: string }

const listeners = new Set<() => void>()
const notify = () => listeners.forEach((l) => l())
if (typeof window !== 'undefined') window.addEventListener('popstate', notify)

const currentPath = () => {
  const base = baseURL().pathname
  const path = window.location.pathname
  return path.startsWith(base) ? path.slice(base.length) : path.slice(1)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Reads the route of a path without the base. */
export function parseRoute(path: string): Route {
  const [page, first, second, ...more] = path.split('/').filter(Boolean).map(decode)
  if (!page) return { page: 'home' }
  if (first && more.length === 0) {
    if (page === 'chat') return { page, flow: first, session: second }
    if (!second && (page === 'form' || page === 'batch' || page === 'graph' || page === 'history')) return { page, flow: first }
    if (!second && page === 'trace') return { page, run: first }
  }
  return { page: 'missing', path }
}

/** The path of a page, relative to the base. */
export const pathOf = (...parts: string[]) => parts.map(encodeURIComponent).join('/')

/** Shows another page; replace does so without a new entry in the history. */
export function navigate(path: string, replace = false): void {
  const url = new URL(path || '.', baseURL())
  if (url.href !== window.location.href) {
    if (replace) window.history.replaceState(null, '', url)
    else window.history.pushState(null, '', url)
  }
  notify()
}

export function useRoute(): Route {
  const path = useSyncExternalStore((l) => (listeners.add(l), () => listeners.delete(l)), currentPath)
  return parseRoute(path)
}

/** A link to a page of the application. */
export function Link({ to, onClick, ...rest }: { to: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  const follow = (e: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(e)
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
    e.preventDefault()
    navigate(to)
  }
  return <a href={new URL(to || '.', baseURL()).href} onClick={follow} {...rest} />
}
