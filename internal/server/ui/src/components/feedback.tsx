import { Star, ThumbsDown, ThumbsUp } from 'lucide-react'
import { useState } from 'react'
import { sendFeedback, type Feedback } from '@/lib/api'
import { asProblem } from '@/lib/problem'
import type { FeedbackConfig, GivenFeedback } from '@/lib/types'
import { Button, Dialog, IconButton, cx } from './ui'

interface FeedbackProps {
  config: FeedbackConfig
  span?: string
  trace?: string
  run?: string
  given?: GivenFeedback // before the page was loaded
  place?: { session?: string; memory?: string; turn?: number } // if the run is not known any more
}
type Choice = Feedback['feedback']

/** Collects feedback on an output as the flow configures it. */
export function FeedbackBar({ config, span, trace, run, given, place }: FeedbackProps) {
  const [chosen, setChoice] = useState<Choice>()
  const choice = chosen ?? (given as Choice | undefined)
  const [explaining, setExplaining] = useState<Choice>()
  const [message, setMessage] = useState('')
  const send = async (feedback: Choice, explanation?: string) => {
    setExplaining(undefined)
    setChoice(feedback)
    try {
      await sendFeedback({ span_id: span, trace_id: trace, run, ...place, feedback, ...(explanation && { explanation }) })
      setMessage('Thank you.')
    } catch (e) {
      setChoice(undefined)
      setMessage(`Not sent: ${asProblem(e).message}`)
    }
  }
  const choose = (feedback: Choice) => (config.explanation ? setExplaining(feedback) : void send(feedback))
  return (
    <div role="group" aria-label="Feedback" className="flex flex-wrap items-center gap-1">
      {config.type === 'thumbs' && <Thumbs choice={choice} onChoose={choose} />}
      {config.type === 'rating' && <Rating scale={config.scale ?? 5} choice={choice} onChoose={choose} />}
      {config.type === 'category' && <Categories config={config} choice={choice} onChoose={choose} />}
      <span role="status" className="text-[0.82rem] text-dim">{message || given?.explanation}</span>
      {explaining && <Explain onClose={() => setExplaining(undefined)} onSend={(text) => void send(explaining, text)} />}
    </div>
  )
}

interface ChoiceProps {
  choice?: Choice
  onChoose: (c: Choice) => void
}

function Thumbs({ choice, onChoose }: ChoiceProps) {
  const chosen = choice?.type === 'thumbs' ? choice.value : undefined
  return (
    <>
      <IconButton small icon={ThumbsUp} label="Good answer" aria-pressed={chosen === true} className={chosen === true ? 'text-accent' : ''} onClick={() => onChoose({ type: 'thumbs', value: true })} />
      <IconButton small icon={ThumbsDown} label="Bad answer" aria-pressed={chosen === false} className={chosen === false ? 'text-accent' : ''} onClick={() => onChoose({ type: 'thumbs', value: false })} />
    </>
  )
}

function Rating({ scale, choice, onChoose }: ChoiceProps & { scale: number }) {
  const score = choice?.type === 'rating' ? choice.score : 0
  return (
    <span role="radiogroup" aria-label={`Rating from 1 to ${scale}`} className="inline-flex">
      {Array.from({ length: scale }, (_, i) => (
        <button key={i} type="button" role="radio" aria-checked={score === i + 1} aria-label={`${i + 1} of ${scale}`} onClick={() => onChoose({ type: 'rating', score: i + 1 })} className="grid size-7 place-items-center rounded-md text-dim hover:text-accent">
          {scale <= 5 ? <Star aria-hidden size={16} className={cx(i < score && 'fill-accent text-accent')} /> : <span className={cx('text-[0.85rem]', i + 1 === score && 'font-bold text-accent')}>{i + 1}</span>}
        </button>
      ))}
    </span>
  )
}

function Categories({ config, choice, onChoose }: ChoiceProps & { config: FeedbackConfig }) {
  const sent = choice?.type === 'category' ? choice.categories : []
  const [picked, setPicked] = useState<string[]>([])
  const many = config.allow_multiple
  const pick = (c: string) => {
    if (!many) return onChoose({ type: 'category', categories: [c] })
    setPicked(picked.includes(c) ? picked.filter((p) => p !== c) : [...picked, c])
  }
  const shown = sent.length ? sent : picked
  return (
    <>
      {(config.categories ?? []).map((c) => (
        <button key={c} type="button" aria-pressed={shown.includes(c)} onClick={() => pick(c)} className={cx('rounded-full border px-2.5 py-0.5 text-[0.83rem]', shown.includes(c) ? 'border-accent bg-accent-soft text-accent' : 'border-line-strong/60 hover:border-accent')}>
          {c}
        </button>
      ))}
      {many && picked.length > 0 && sent.length === 0 && <Button small onClick={() => onChoose({ type: 'category', categories: picked })}>Send</Button>}
    </>
  )
}

function Explain({ onClose, onSend }: { onClose: () => void; onSend: (text: string) => void }) {
  const [text, setText] = useState('')
  return (
    <Dialog open onClose={onClose} title="Your feedback" description="What was good or bad about this answer?">
      <form className="flex flex-col gap-3 px-5 pb-5" onSubmit={(e) => (e.preventDefault(), onSend(text.trim()))}>
        <textarea aria-label="Explanation" autoFocus rows={4} className="field" value={text} onChange={(e) => setText(e.target.value)} placeholder="Optional" />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">Send feedback</Button>
        </div>
      </form>
    </Dialog>
  )
}
