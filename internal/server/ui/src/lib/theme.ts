import { useSyncExternalStore } from 'react'

export type Theme = 'light' | 'dark' | 'system'
const listeners = new Set<() => void>()
const dark = window.matchMedia('(prefers-color-scheme: dark)')

/** The chosen theme. */
export const theme = (): Theme => {
  const stored = localStorage.getItem('qtype.theme')
  return stored === 'dark' || stored === 'light' ? stored : 'system'
}

function apply(): void {
  const chosen = theme()
  document.documentElement.dataset.theme = chosen === 'system' ? (dark.matches ? 'dark' : 'light') : chosen
  listeners.forEach((l) => l())
}

/** Chooses a theme and stores it for the next visit. */
export function setTheme(t: Theme): void {
  if (t === 'system') localStorage.removeItem('qtype.theme')
  else localStorage.setItem('qtype.theme', t)
  apply()
}

export const useTheme = () => useSyncExternalStore((l) => (listeners.add(l), () => listeners.delete(l)), theme)

dark.addEventListener('change', apply)
apply()
