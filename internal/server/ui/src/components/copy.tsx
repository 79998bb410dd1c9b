import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { copyText } from '@/lib/download'
import { IconButton } from './ui'

/** Copies a text, and shows for a moment that it did. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1500)
    return () => clearTimeout(timer)
  }, [copied])
  return <IconButton small icon={copied ? Check : Copy} label={copied ? 'Copied' : label} onClick={() => copyText(text).then(setCopied)} />
}
