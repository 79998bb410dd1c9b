import { useEffect } from 'react'

/**
 * A replacement of react-style-singleton that uses constructed style sheets, which a content
 * security policy without 'unsafe-inline' permits. Radix locks the scrolling of the page with it.
 */
function useStyle(styles: string | undefined): void {
  useEffect(() => {
    if (!styles) return
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(styles)
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
    return () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== sheet)
    }
  }, [styles])
}

export function styleSingleton() {
  return function Style({ styles }: { styles: string; dynamic?: boolean }) {
    useStyle(styles)
    return null
  }
}

export const styleHookSingleton = () => useStyle
export function stylesheetSingleton() {
  return { add: () => undefined, remove: () => undefined }
}
