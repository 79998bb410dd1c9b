import { createContext, useContext } from 'react'
import type { AppInfo, Flow } from '@/lib/types'

interface ShellValue {
  app: AppInfo
  flows: Flow[]
  openMenu: () => void
  openPalette: () => void
}
export const ShellContext = createContext<ShellValue | null>(null)

/** The application and what the frame of the page offers. */
export function useShell(): ShellValue {
  const value = useContext(ShellContext)
  if (!value) throw new Error('no shell')
  return value
}
