'use strict'
// Shows the rows as a matrix, of which only the visible part is in the page, and a row with its answers, scores, calls and annotations in a dialog.
const byID = id => document.getElementById(id)
const data = JSON.parse(byID('index').textContent)
const form = document.querySelector('form')
const fields = form.elements
const matrix = document.querySelector('.matrix')
const dialog = document.querySelector('dialog')
const parts = []
const complete = () => document.readyState !== 'loading'

// row returns the row with a place in the order of the page; undefined while the page is still read.
function row (i) {
  const n = Math.floor(i / data.chunk)
  const ready = n === 0 || complete() || byID('rows-' + (n + 1))
  if (!parts[n] && ready) parts[n] = JSON.parse(byID('rows-' + n).textContent)
  return parts[n]?.[i % data.chunk]
}

// h makes an element.
function h (name, attributes, ...children) {
  const e = document.createElement(name)
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value)
    else if (value !== undefined && value !== false) e.setAttribute(key, value === true ? '' : value)
  }
  e.append(...children.flat(Infinity).filter(c => c !== undefined && c !== ''))
  return e
}

// Annotations, by row, variant and trial.
const keyOf = (n, variant, trial) => JSON.stringify([n, variant, trial || 0])
const notes = new Map()
function keep (annotations) {
  notes.clear()
  for (const a of annotations ?? []) notes.set(keyOf(a.row, a.variant, a.trial), a)
}
keep(data.saved)
const server = { Authorization: 'Bearer ' + data.token, 'Content-Type': 'application/json' }
async function annotations (request) {
  const response = await fetch('annotations', { headers: server, ...request })
  if (!response.ok) throw new Error((await response.json()).detail ?? response.statusText)
  keep(await response.json())
}

// What is shown, and in which order.
const bit = (flags, n) => Math.floor(flags / 2 ** n) % 2 === 1
const noted = n => data.variants.some((_, v) => [...notes.values()].some(a => a.row === n && a.variant === data.variants[v]))
const filters = {
  'all rows': () => true,
  'rows not passed': i => data.flags[i] > 0 && data.flags[i] !== 2,
  'rows that failed': i => bit(data.flags[i], 0),
  disagreements: i => data.apart[i] > 0,
  ...(data.before && { ['verdicts other than in ' + data.before]: i => bit(data.flags[i], 1) }),
  'rows with annotations': i => noted(data.numbers[i]),
  ...Object.fromEntries(data.metrics.map((m, n) => ['not passed: ' + m, i => bit(data.flags[i], n + 2)]))
}
const places = Array.from(data.numbers, (_, i) => i)
let shown = places
let search = 0

const wordsOf = r => [r.n, r.k, r.i, r.c.map(v => v.t.map(c => [c.o, c.e, c.s, c.d?.map(m => m.text)]))].flat(Infinity).join('\n').toLowerCase()
const pause = () => new Promise(resolve => setTimeout(resolve))
const counted = n => { fields.count.value = `${n.toLocaleString('en')} of ${places.length.toLocaleString('en')} rows` }

// filter finds the rows; texts are searched in short pieces of time.
async function filter () {
  const run = ++search
  const words = fields.text.value.toLowerCase().split(/\s+/).filter(Boolean)
  let found = places.filter(filters[fields.show.value])
  if (fields.order.value) found.sort((a, b) => data.numbers[a] - data.numbers[b])
  if (words.length) {
    const all = found
    found = []
    let until = performance.now() + 15
    for (const i of all) {
      while (!row(i)) await pause()
      const text = wordsOf(row(i))
      if (words.every(word => text.includes(word))) found.push(i)
      if (performance.now() < until) continue
      fields.count.value = `searching: ${found.length.toLocaleString('en')} rows`
      await pause()
      if (run !== search) return
      until = performance.now() + 15
    }
  }
  shown = found
  counted(shown.length)
  body.style.height = Math.min(shown.length * height, maxHeight) + 'px'
  matrix.scrollTop = 0
  draw(true)
}

// The matrix. A browser cannot scroll elements that are higher than some 17 million pixels.
const maxHeight = 16e6
const narrow = matchMedia('(max-width: 50rem)')
const body = h('div', { role: 'rowgroup', class: 'body' })
const drawn = new Map() // rows by place in shown
let height = 0

function layout () {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize)
  height = Math.round(rem * (narrow.matches ? 3.2 + 5.2 * data.variants.length : 6.2))
  body.style.height = Math.min(shown.length * height, maxHeight) + 'px'
  draw(true)
}

const excerpt = values => values.map(([, text]) => text).join(' · ').slice(0, 400)
const score = ([kind, text], n) => h('span', { class: 'score ' + kind }, data.metrics[n] + ' ', h('b', {}, text))

function cellOf (r, v, at) {
  const variant = r.c[v]
  const first = variant.t[0]
  if (!first) return h('span', { role: 'cell', class: 'cell' }, '')
  const text = first.e ? 'failed: ' + first.e.slice(0, 400) : excerpt(first.o)
  return h('span', { role: 'cell', class: 'cell' },
    h('span', { class: 'scores' }, h('span', { class: 'variant' }, data.variants[v]), variant.s.slice(0, 6).map(score),
      variant.t.some((_, t) => notes.has(keyOf(r.n, data.variants[v], variant.t.length > 1 ? t + 1 : 0))) ? h('span', { class: 'noted' }, '✎ annotated') : ''),
    h('button', { type: 'button', class: 'answer' + (first.e ? ' fail' : ''), 'aria-label': text.trim() ? undefined : 'open', onclick: () => show(at, v) }, text))
}

function lineOf (at) {
  const i = shown[at]
  const r = row(i)
  const cells = r
    ? [h('span', { role: 'cell', class: 'cell input' }, excerpt(r.i)), ...data.variants.map((_, v) => cellOf(r, v, at))]
    : [h('span', { role: 'cell', class: 'cell' }, 'reading …')]
  const line = h('div', { role: 'row', class: 'line', 'aria-rowindex': at + 2 }, h('span', { role: 'rowheader', class: 'cell' }, data.numbers[i].toLocaleString('en')), cells)
  line.style.top = at * height + 'px'
  line.style.height = height + 'px'
  Object.assign(line, { at, read: Boolean(r) })
  return line
}

// draw puts the rows that can be seen into the page.
function draw (again) {
  const from = Math.max(0, Math.floor(matrix.scrollTop / height) - 4)
  const to = Math.min(shown.length, Math.floor(maxHeight / height), Math.ceil((matrix.scrollTop + matrix.clientHeight) / height) + 4)
  for (const [at, line] of drawn) {
    if (again || at < from || at >= to || !line.read) {
      line.remove()
      drawn.delete(at)
    }
  }
  for (let at = from; at < to; at++) {
    if (drawn.has(at)) continue
    const line = lineOf(at)
    drawn.set(at, line)
    const next = [...body.children].find(e => e.at > at)
    body.insertBefore(line, next ?? null)
  }
}

// diff marks the words of a text that another one does not have, and those that only the other one has.
function diff (other, text) {
  const a = other.split(/(?<=\s)/)
  const b = text.split(/(?<=\s)/)
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const p = a.slice(start, a.length - end)
  const q = b.slice(start, b.length - end)
  const marked = [['', a.slice(0, start).join('')]]
  const add = (kind, word) => {
    const last = marked[marked.length - 1]
    if (last[0] === kind) last[1] += word
    else marked.push([kind, word])
  }
  if (p.length * q.length > 4e6) {
    add('del', p.join(''))
    add('ins', q.join(''))
  } else {
    const width = q.length + 1
    const common = new Uint16Array((p.length + 1) * width) // the longest common sequence of the rests
    for (let i = p.length - 1; i >= 0; i--) {
      for (let j = q.length - 1; j >= 0; j--) {
        common[i * width + j] = p[i] === q[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1])
      }
    }
    for (let i = 0, j = 0; i < p.length || j < q.length;) {
      if (i < p.length && j < q.length && p[i] === q[j]) {
        add('', p[i++])
        j++
      } else if (j === q.length || (i < p.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) add('del', p[i++])
      else add('ins', q[j++])
    }
  }
  add('', a.slice(a.length - end).join(''))
  return marked.filter(([, words]) => words).map(([kind, words]) => kind ? h(kind, {}, words) : words)
}

// The dialog with a row.
let open = 0 // the place in shown
let compared = data.before && data.variants.length < 2 ? 'before' : 'first'
const trials = data.variants.map(() => 0)

const valuesOf = (values, others) => h('dl', {}, values.map(([name, text]) => {
  const other = others?.find(o => o[0] === name)
  return [h('dt', {}, name), h('dd', {}, h('pre', {}, other && other[1] !== text ? diff(other[1], text) : text))]
}))

function othersOf (r, v) {
  const cell = r.c[v].t[trials[v]] ?? r.c[v].t[0]
  if (compared === 'before') return cell.b
  if (compared === 'first' && v > 0) return (r.c[0].t[trials[0]] ?? r.c[0].t[0])?.o
}

function callOf (c) {
  const text = m => h('pre', {}, m.ref === undefined ? m.text ?? '' : data.texts[m.ref])
  return h('li', {}, h('strong', {}, c.model ? 'model ' + c.model : 'tool ' + c.tool), h('span', { class: 'dim' }, ' ' + c.used),
    h('dl', {},
      c.same ? [h('dt', {}, 'sent'), h('dd', {}, `${c.same} messages as in the call before, and:`)] : [],
      (c.sent ?? []).map(m => [h('dt', {}, m.role), h('dd', {}, text(m))]),
      c.arguments ? [h('dt', {}, 'arguments'), h('dd', {}, h('pre', {}, JSON.stringify(c.arguments, null, 2)))] : [],
      c.answer ? [h('dt', {}, c.model ? 'answer' : 'result'), h('dd', {}, h('pre', {}, c.answer))] : [],
      c.error ? [h('dt', {}, 'error'), h('dd', { class: 'fail' }, c.error)] : []))
}

const saidOf = m => [h('dt', {}, m.role), h('dd', {}, h('pre', {}, m.text), (m.calls ?? []).map(c => h('pre', { class: 'dim' }, `→ ${c.tool}(${c.arguments}) ${c.result ?? ''}`)))]

function annotationOf (r, v, trial, cell) {
  const variant = data.variants[v]
  const key = keyOf(r.n, variant, trial)
  const note = notes.get(key)
  const stale = note && cell.o.some(([name, text]) => !data.columns.includes(name) && note[name] !== undefined && note[name] !== text)
  const status = h('output', {}, stale ? 'This is about an earlier answer.' : '')
  const save = async event => {
    event.preventDefault()
    const { label, note } = Object.fromEntries(new FormData(event.target))
    try {
      if (data.token) await annotations({ method: 'POST', body: JSON.stringify({ row: r.n, variant, trial, label, note }) })
      else if (label || note) notes.set(key, { ...Object.fromEntries([...r.i, ...cell.o]), row: r.n, variant, ...(trial && { trial }), label, note, time: new Date().toISOString().slice(0, 19) + 'Z' })
      else notes.delete(key)
      status.value = data.token ? 'Saved.' : 'Kept until you leave the page: download the annotations.'
      fields.download.hidden = Boolean(data.token)
    } catch (e) {
      status.value = 'Not saved: ' + e.message
    }
    draw(true)
  }
  return h('form', { class: 'annotation', onsubmit: save },
    h('label', {}, 'label ', h('select', { name: 'label' }, ['', ...data.labels].map(l => h('option', { selected: l === (note?.label ?? '') }, l)))),
    h('label', { class: 'wide' }, 'note ', h('textarea', { name: 'note', rows: 1 }, note?.note ?? '')),
    h('button', {}, 'Save'), status)
}

function resultOf (r, v) {
  const variant = r.c[v]
  const cell = variant.t[trials[v]] ?? variant.t[0]
  if (!cell) return ''
  const several = variant.t.length > 1
  const others = othersOf(r, v)
  const choose = event => {
    trials[v] = Number(event.target.value)
    fill()
  }
  return h('section', { 'aria-label': data.variants[v] }, h('h3', {}, data.variants[v]),
    several ? h('label', {}, 'trial ', h('select', { onchange: choose }, variant.t.map((_, t) => h('option', { value: t, selected: cell === variant.t[t] }, t + 1)))) : '',
    cell.e ? h('p', { class: 'fail' }, 'failed: ' + cell.e) : '',
    valuesOf(cell.o, others),
    compared === 'before' && data.before && !cell.b ? h('p', { class: 'dim' }, 'The answer is the same, or the earlier report does not have it.') : '',
    h('ul', { class: 'verdicts' }, cell.s.map((s, n) => s[1] ? h('li', {}, score(s, n), ' ', s[2]) : '')),
    h('p', { class: 'dim' }, cell.u),
    cell.d ? h('details', {}, h('summary', {}, `Conversation (${cell.d.length} messages)`), h('dl', {}, cell.d.map(saidOf))) : '',
    cell.x ? h('details', {}, h('summary', {}, `Calls of models and tools (${cell.x.length})`), h('ol', {}, cell.x.map(callOf))) : '',
    annotationOf(r, v, several ? (variant.t.indexOf(cell) + 1) : 0, cell))
}

function fill () {
  const r = row(shown[open])
  if (!r) return
  const step = n => h('button', { type: 'button', disabled: !(open + n in shown), onclick: () => move(n) }, n < 0 ? 'Previous' : 'Next')
  const choices = [['', 'nothing'], ...(data.variants.length > 1 ? [['first', data.variants[0]]] : []), ...(data.before ? [['before', data.before]] : [])]
  const compare = event => {
    compared = event.target.value
    fill()
  }
  dialog.replaceChildren(
    h('header', {}, h('h2', { id: 'title' }, 'Row ' + r.n.toLocaleString('en') + (r.k ? ', session ' + r.k : '')),
      choices.length > 1 ? h('label', {}, 'compare with ', h('select', { name: 'compare', onchange: compare }, choices.map(([value, text]) => h('option', { value, selected: value === compared }, text)))) : '',
      step(-1), step(1), h('button', { type: 'button', onclick: () => dialog.close() }, 'Close')),
    h('div', { class: 'content', tabindex: 0, role: 'region', 'aria-labelledby': 'title' }, valuesOf(r.i), h('div', { class: 'results' }, data.variants.map((_, v) => resultOf(r, v)))))
}

function move (n) {
  if (!(open + n in shown)) return
  open += n
  trials.fill(0)
  fill()
}

function show (at, v) {
  open = at
  trials.fill(0)
  fill()
  dialog.showModal()
  dialog.querySelectorAll('section')[v]?.scrollIntoView?.()
}

dialog.addEventListener('keydown', event => {
  if (/^(TEXTAREA|SELECT|INPUT)$/.test(event.target.tagName)) return
  if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') move(event.key === 'ArrowLeft' ? -1 : 1)
})

fields.download.addEventListener('click', () => {
  const lines = [...notes.values()].map(a => JSON.stringify(a) + '\n')
  h('a', { href: URL.createObjectURL(new Blob(lines, { type: 'application/jsonl' })), download: 'report.annotations.jsonl' }).click()
  fields.download.hidden = true
})
window.addEventListener('beforeunload', event => { if (!fields.download.hidden) event.preventDefault() })

fields.show.append(...Object.keys(filters).map(text => h('option', {}, text)))
matrix.append(h('div', { role: 'table', class: 'table', 'aria-label': 'Each row with each variant', 'aria-rowcount': places.length + 1 },
  h('div', { role: 'rowgroup', class: 'head' }, h('div', { role: 'row', class: 'line' }, ['Row', 'Input', ...data.variants].map(text => h('span', { role: 'columnheader', class: 'cell' }, text)))), body))
matrix.style.setProperty('--variants', data.variants.length)
form.hidden = matrix.hidden = false
form.addEventListener('input', filter)
form.addEventListener('submit', event => event.preventDefault())
matrix.addEventListener('scroll', () => draw(), { passive: true })
addEventListener('resize', layout)
document.addEventListener('DOMContentLoaded', () => draw(), { once: true })
layout()
filter() // a browser keeps what was typed
if (data.token) annotations().then(() => draw(true), e => { fields.count.value += ', annotations are not read: ' + e.message })
