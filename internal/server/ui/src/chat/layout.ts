import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react'

const wideQuery = window.matchMedia('(min-width: 1100px)')

/** Reports whether the context fits next to the conversation. */
export const useWide = () =>
  useSyncExternalStore(
    (l) => (wideQuery.addEventListener('change', l), () => wideQuery.removeEventListener('change', l)),
    () => wideQuery.matches,
  )

/** Keeps the end of growing content visible while the user does not scroll up. */
export function useStickToBottom() {
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const stick = useRef(true)
  const [atBottom, setAtBottom] = useState(true)
  useEffect(() => {
    const el = scroller.current!
    let top = el.scrollTop
    const scroll = () => {
      const distance = el.scrollHeight - el.scrollTop - el.clientHeight
      if (el.scrollTop < top - 2) stick.current = distance < 4
      else if (distance < 60) stick.current = true
      top = el.scrollTop
      setAtBottom(distance < 120)
    }
    const observer = new ResizeObserver(() => {
      if (stick.current) el.scrollTop = el.scrollHeight
      scroll()
    })
    observer.observe(content.current!)
    observer.observe(el)
    el.addEventListener('scroll', scroll, { passive: true })
    return () => {
      observer.disconnect()
      el.removeEventListener('scroll', scroll)
    }
  }, [])
  const toBottom = useCallback(() => {
    stick.current = true
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight })
  }, [])
  return { scroller, content, atBottom, toBottom }
}
