// The editor: CodeMirror in a shadow root, where it needs no style elements, which the
// content security policy forbids.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type Completion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { EditorState, type Text } from '@codemirror/state'
import { EditorView, drawSelection, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import type { Checker } from './checker'

export interface Position { line: number; character: number }
export interface Range { start: Position; end: Position }
export interface Item { range: Range; severity: number; code: string; message: string; data?: { suggestion?: string } }

interface CompletionItem {
  label: string
  kind: number
  detail?: string
  documentation?: { value: string }
  sortText?: string
  filterText?: string
  textEdit?: { range: Range; newText: string }
}

/** offset returns the place of a position; one outside of the text is moved into it. */
export function offset(doc: Text, at: Position): number {
  if (at.line >= doc.lines) return doc.length
  const line = doc.line(Math.max(at.line, 0) + 1)
  return Math.min(line.from + Math.max(at.character, 0), line.to)
}

const position = (doc: Text, at: number): Position => {
  const line = doc.lineAt(at)
  return { line: line.number - 1, character: at - line.from }
}

const theme = EditorView.theme({
  '&': { height: '100%', color: 'var(--ink)', backgroundColor: 'var(--paper)', fontSize: '0.85rem' },
  '.cm-scroller': { fontFamily: 'ui-monospace, monospace' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--soft)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--accent) 10%, transparent)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'color-mix(in srgb, var(--accent) 30%, transparent)' },
  '.cm-tooltip': { backgroundColor: 'var(--panel)', color: 'var(--ink)', border: '1px solid var(--frame)', maxWidth: '36rem' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--paper)' },
  '.hover': { padding: '0.3rem 0.6rem', whiteSpace: 'pre-wrap', maxHeight: '14rem', overflow: 'auto' },
})

const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
  { tag: [tags.typeName, tags.keyword, tags.labelName], color: 'var(--warning)' },
])

/** inserted returns a proposal of the language server for CodeMirror. */
function inserted(item: CompletionItem): Completion {
  return {
    label: item.filterText || item.label, displayLabel: item.label, detail: item.detail,
    type: item.kind === 10 ? 'property' : item.kind === 7 ? 'class' : 'constant',
    info: item.documentation?.value, sortText: item.sortText,
    apply: (view, _, from, to) => {
      const insert = item.textEdit?.newText ?? item.label
      view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent: 'input.complete' })
    },
  }
}

function complete(checker: Checker) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const word = context.matchBefore(/[\w.\-/[\]?!]+/)
    if (!context.explicit && !word && !/[:\-{[,] $/.test(context.state.sliceDoc(Math.max(0, context.pos - 2), context.pos))) return null
    const text = context.state.doc
    const list = await checker.call<{ items: CompletionItem[] }>('complete', { text: text.toString(), ...position(text, context.pos) }).catch(() => null)
    if (!list?.items.length) return null
    const range = list.items[0].textEdit?.range
    return {
      from: range ? offset(text, range.start) : (word?.from ?? context.pos), to: range ? Math.max(offset(text, range.end), context.pos) : context.pos,
      options: list.items.map(inserted), validFor: /^[\w.\-]*$/,
    }
  }
}

function hover(checker: Checker) {
  return hoverTooltip(async (view, at) => {
    const text = view.state.doc
    const found = await checker.call<{ contents: { value: string } | null; range?: Range } | null>('hover', { text: text.toString(), ...position(text, at) }).catch(() => null)
    if (!found?.contents) return null
    const value = found.contents.value
    return {
      pos: found.range ? offset(text, found.range.start) : at, end: found.range ? offset(text, found.range.end) : at, above: true,
      create: () => {
        const dom = document.createElement('div')
        dom.className = 'hover'
        dom.textContent = value
        return { dom }
      },
    }
  })
}

/** asDiagnostic returns a diagnostic of the language server for CodeMirror. */
function asDiagnostic(doc: Text, item: Item): Diagnostic {
  const from = offset(doc, item.range.start)
  const suggestion = item.data?.suggestion
  return {
    from, to: Math.max(from, offset(doc, item.range.end)), severity: item.severity === 1 ? 'error' : 'warning', source: item.code, message: item.message,
    actions: suggestion === undefined ? [] : [{
      name: `Replace by ${suggestion}`,
      apply: (view, start, end) => view.dispatch({ changes: { from: start, to: end, insert: suggestion }, userEvent: 'input' }),
    }],
  }
}

/** show marks diagnostics in the text that they belong to. */
export function show(view: EditorView, items: Item[]) {
  view.dispatch(setDiagnostics(view.state, items.map((item) => asDiagnostic(view.state.doc, item))))
}

/** create makes the editor in an element. */
export function create(parent: HTMLElement, checker: Checker, changed: () => void): EditorView {
  const root = parent.attachShadow({ mode: 'open' })
  return new EditorView({
    parent: root as unknown as HTMLElement, root,
    state: EditorState.create({
      extensions: [
        lineNumbers(), history(), drawSelection(), indentOnInput(), indentUnit.of('  '), EditorState.tabSize.of(2), bracketMatching(), closeBrackets(),
        highlightActiveLine(), highlightSelectionMatches(), search(), yaml(), syntaxHighlighting(colors), theme, lintGutter(), hover(checker),
        autocompletion({ override: [complete(checker)], maxRenderedOptions: 200 }),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ 'aria-label': 'Document, YAML', 'data-testid': 'document', tabindex: '0' }),
        EditorView.updateListener.of((update) => { if (update.docChanged) changed() }),
      ],
    }),
  })
}

/** replace makes a text the content of the editor, as one change that can be undone. */
export function replace(view: EditorView, text: string) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } })
}
