import { useQueryClient } from '@tanstack/react-query'
import { KeyRound } from 'lucide-react'
import { useState, type FormEvent } from 'react'
import { Button } from '@/components/ui'
import { apiKey, setAPIKey } from '@/lib/auth'

/** Requests an API key. It is kept until the tab is closed. */
export function KeyScreen() {
  const client = useQueryClient()
  const [key, setKey] = useState('')
  const had = apiKey() !== ''
  const submit = (e: FormEvent) => {
    e.preventDefault()
    setAPIKey(key.trim())
    void client.resetQueries()
  }
  return (
    <main className="mx-auto mt-[16vh] max-w-sm px-4">
      <form onSubmit={submit} className="card p-6">
        <KeyRound aria-hidden className="text-accent" size={26} />
        <h1 className="mt-3 text-lg font-semibold">This application needs a key</h1>
        <p className="mt-1 text-dim">Enter an API key or a token of this server. It is kept in this tab only.</p>
        {had && (
          <p role="alert" className="mt-3 rounded-lg bg-bad-soft px-3 py-2 text-bad">
            The server does not accept the key that was entered.
          </p>
        )}
        <label className="mt-4 block">
          <span className="mb-1 block font-medium">API key</span>
          <input className="field font-mono" type="password" autoComplete="off" autoFocus value={key} onChange={(e) => setKey(e.target.value)} />
        </label>
        <Button type="submit" variant="primary" className="mt-4 w-full" disabled={!key.trim()}>
          Continue
        </Button>
      </form>
    </main>
  )
}
