// The page: the editor, the problems and the picture of its document, and the replay.
import type { EditorView } from '@codemirror/view'
import { Checker } from './checker'
import { create, offset, replace, show, type Item } from './editor'
import { readText } from './files'
import { decode, encode } from './link'
import { element, make, messageOf, note } from './page'
import { Replay, type Memory } from './replay'

interface Example { name: string; title: string; text: string; transcript: string }
interface Drawing { svg: string; mermaid: string; title: string; memories: Memory[] }
interface Explanation { code: string; severity: string; title: string; doc: string; wrong: string; right: string }

const pause = 200 // milliseconds without a change before a check
const checker = new Checker()
const replay = new Replay(checker)
let timer: ReturnType<typeof setTimeout> | undefined
let revision = 0 // of the text
let picture = '' // the address of the picture that is shown

const view: EditorView = create(element('editor'), checker, () => {
  revision++
  clearTimeout(timer)
  timer = setTimeout(() => void check(), pause)
})
const text = () => view.state.doc.toString()
const status = (message: string) => note('status', message || ' ')

async function check() {
  const checked = revision
  const source = text()
  try {
    const { items } = await checker.call<{ items: Item[] }>('check', { text: source })
    if (checked !== revision) return
    show(view, items)
    listProblems(items)
    const errors = items.filter((item) => item.severity === 1).length
    status(items.length === 0 ? 'No problems' : `${errors} ${errors === 1 ? 'error' : 'errors'}, ${items.length - errors} ${items.length - errors === 1 ? 'warning' : 'warnings'}`)
    element<HTMLButtonElement>('format').disabled = false
    await draw(source, checked, errors > 0)
  } catch (error) {
    if (checked === revision) status(messageOf(error))
  }
}

/** draw shows the picture of a document, or keeps the last one while it has errors. */
async function draw(source: string, checked: number, hasErrors: boolean) {
  element('picture').classList.toggle('stale', hasErrors)
  note('picture-note', hasErrors ? 'The picture is that of the last document without errors.' : '')
  if (hasErrors) return
  try {
    const drawing = await checker.call<Drawing>('draw', { text: source })
    if (checked !== revision) return
    // An image runs no scripts of any document.
    const image = make('img')
    image.alt = `Flow of ${drawing.title}: its steps, and the models, memories and tools that they use. The text below has the same.`
    URL.revokeObjectURL(picture)
    image.src = picture = URL.createObjectURL(new Blob([drawing.svg], { type: 'image/svg+xml' }))
    element('picture').replaceChildren(image)
    note('mermaid', drawing.mermaid)
    replay.open(source, drawing.memories)
  } catch (error) {
    if (checked === revision) note('picture-note', messageOf(error))
  }
}

function listProblems(items: Item[]) {
  element('problems').replaceChildren(...items.map((item) => {
    const entry = make('li', item.severity === 1 ? 'is-error' : 'is-warning')
    const go = make('button', '', `${item.range.start.line + 1}:${item.range.start.character + 1}`)
    go.type = 'button'
    go.setAttribute('aria-label', `Go to line ${item.range.start.line + 1}, column ${item.range.start.character + 1}`)
    go.onclick = () => {
      view.dispatch({ selection: { anchor: offset(view.state.doc, item.range.start), head: offset(view.state.doc, item.range.end) }, scrollIntoView: true })
      view.focus()
    }
    const code = make('button', '', item.code)
    code.type = 'button'
    code.setAttribute('aria-label', `Explain ${item.code}`)
    code.onclick = () => void explain(item.code)
    entry.append(go, make('span', 'severity', item.severity === 1 ? 'error' : 'warning'), make('span', 'message', item.message), code)
    return entry
  }))
}

async function explain(code: string) {
  const section = element('explanation')
  try {
    const found = await checker.call<Explanation>('explain', { code })
    const close = make('button', '', 'Close')
    close.type = 'button'
    close.onclick = () => { section.hidden = true }
    const parts: Node[] = [make('h3', '', `${found.code} (${found.severity}): ${found.title}`), make('p', '', found.doc)]
    for (const [name, example] of [['Wrong', found.wrong], ['Right', found.right]]) {
      if (example) parts.push(make('h4', '', name), make('pre', '', example))
    }
    section.replaceChildren(...parts, close)
  } catch (error) {
    section.replaceChildren(make('p', 'error', messageOf(error)))
  }
  section.hidden = false
}

element('format').onclick = async () => {
  try {
    const source = text()
    const formatted = await checker.call<{ text: string }>('format', { text: source })
    if (source === text() && formatted.text !== source) replace(view, formatted.text)
  } catch (error) {
    status(messageOf(error))
  }
}

element('link').onclick = async () => {
  const fragment = await encode(text())
  history.replaceState(null, '', fragment)
  try {
    await navigator.clipboard.writeText(location.href)
    status('The link is copied; it contains the document')
  } catch {
    status('The address of the page is the link; it contains the document')
  }
}

async function openLink(): Promise<boolean> {
  try {
    const linked = await decode(location.hash)
    if (linked === undefined) return false
    replace(view, linked)
    element<HTMLSelectElement>('examples').value = ''
    return true
  } catch (error) {
    status(messageOf(error))
    return false
  }
}

function offer(examples: Example[]) {
  const list = element<HTMLSelectElement>('examples')
  const none = make('option', '', 'from a link')
  none.value = ''
  none.hidden = true
  list.replaceChildren(none, ...examples.map((example) => {
    const option = make('option', '', example.title)
    option.value = example.name
    return option
  }))
  const choose = () => {
    const example = examples.find((e) => e.name === list.value)
    if (example) replace(view, example.text)
  }
  list.value = examples[0].name
  list.onchange = choose
  replay.transcript(examples[0].transcript)
  return choose
}

async function start() {
  checker.onVocabulary = () => void replay.run()
  const choose = offer(JSON.parse(await readText('examples.json')) as Example[])
  if (!(await openLink()) && revision === 0) choose() // unless the user has begun to type
  window.addEventListener('hashchange', () => void openLink())
}

start().catch((error: unknown) => status(messageOf(error)))
