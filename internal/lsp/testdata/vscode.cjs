'use strict'
// Runs the extension with a fake module `vscode`, which implements what the extension
// and its client library use; the rest does nothing. Usage: node vscode.cjs EXTENSION QTYPE DOCUMENT...
const Module = require('module')
const fs = require('fs')
const [extensionPath, program, ...paths] = process.argv.slice(2)

class Disposable { constructor (f) { this.dispose = f ?? (() => {}) } static from () { return new Disposable() } }
class EventEmitter {
  constructor () { this.listeners = []; this.event = (f, self) => { this.listeners.push(f.bind(self)); return new Disposable() } }
  fire (e) { for (const f of this.listeners) f(e) }
  dispose () {}
}
class Position { constructor (l, c) { this.line = l; this.character = c } }
class Range { constructor (a, b, c, d) { [this.start, this.end] = typeof a === 'number' ? [new Position(a, b), new Position(c, d)] : [a, b] } }
class Diagnostic { constructor (range, message, severity) { Object.assign(this, { range, message, severity }) } }
class Uri {
  static file (p) { return Uri.parse('file://' + p) }
  static parse (s) { const u = new Uri(); const at = new URL(s); Object.assign(u, { scheme: at.protocol.slice(0, -1), path: at.pathname, fsPath: at.pathname, text: s }); return u }
  toString () { return this.text }
  with () { return this }
}
class TabInputText { constructor (uri) { this.uri = uri } }
class CancellationTokenSource { constructor () { this.token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() } } cancel () {} dispose () {} }
const shown = new Map()
const errors = []
const commands = new Map()
const providers = new Set()
let settings = { path: program }
const typed = ['Ada', '[1]']
class ProcessExecution { constructor (program, args, options) { Object.assign(this, { program, args, options }) } }
class Task { constructor (definition, scope, name, source, execution) { this.execution = execution } }
const started = []
const event = () => new Disposable()
const collection = () => ({ set: (uri, list) => shown.set(uri.toString(), list), delete: uri => shown.delete(uri.toString()), clear: () => shown.clear(), dispose () {}, has: () => false, forEach () {} })
const channel = () => ({ append () {}, appendLine () {}, show () {}, dispose () {}, clear () {}, replace () {}, hide () {}, name: 'x', logLevel: 2, trace () {}, debug () {}, info () {}, warn () {}, error () {}, onDidChangeLogLevel: event })
const docs = paths.map(path => ({ uri: Uri.file(path), languageId: 'qtype', version: 1, getText: () => fs.readFileSync(path, 'utf8'), fileName: path, isClosed: false, lineCount: 9, isDirty: false }))
const doc = docs[0]
const configured = new EventEmitter()
const known = {
  version: '1.90.0', Disposable, EventEmitter, Position, Range, Diagnostic, Uri, CancellationTokenSource, TabInputText, Task, ProcessExecution, TaskScope: { Workspace: 2 },
  tasks: { executeTask: async task => { const { program: file, args, options } = task.execution; started.push({ program: file, args, cwd: options.cwd }) } },
  env: { appName: 'host', language: 'en', appHost: 'desktop', openExternal () {}, logLevel: 2, onDidChangeLogLevel: event },
  CancellationError: class extends Error {}, MarkdownString: class {}, CompletionItem: class {}, CodeLens: class {}, CodeAction: class {}, DocumentLink: class {}, SymbolInformation: class {}, CallHierarchyItem: class {}, TypeHierarchyItem: class {}, InlayHint: class {}, CodeActionKind: { Empty: { append: () => ({}) } },
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  commands: { registerCommand: (name, f) => { commands.set(name, f); return new Disposable() }, executeCommand: name => commands.get(name)() },
  window: { activeTextEditor: { document: doc }, visibleTextEditors: docs.map(document => ({ document })), showErrorMessage: async m => { errors.push(m) }, showWarningMessage: async () => {}, showInformationMessage: async () => {}, showInputBox: async () => typed.shift(), createOutputChannel: channel, onDidChangeActiveTextEditor: event, onDidChangeVisibleTextEditors: event, tabGroups: { all: [{ tabs: docs.map(d => ({ input: new TabInputText(d.uri) })) }], onDidChangeTabs: event, onDidChangeTabGroups: event }, withProgress: (_, f) => f({ report () {} }, new CancellationTokenSource().token) },
  workspace: {
    isTrusted: true, saveAll: async () => true, textDocuments: docs, notebookDocuments: [], workspaceFolders: undefined, name: undefined, fs: {},
    getConfiguration: () => ({ get: (key, otherwise) => settings[key] ?? otherwise, inspect: () => undefined, has: () => false }),
    onDidChangeConfiguration: configured.event, createFileSystemWatcher: () => ({ onDidCreate: event, onDidChange: event, onDidDelete: event, dispose () {} }),
    getWorkspaceFolder: () => undefined, applyEdit: async () => true
  },
  languages: { match: () => 10, createDiagnosticCollection: collection, createLanguageStatusItem: () => ({ dispose () {} }) }
}
// Everything else does nothing: events never fire, registrations have no effect.
const inert = (name, have) => new Proxy(have, { get: (o, key) => key in o ? o[key] : key === 'then' || typeof key === 'symbol' ? undefined : String(key).startsWith('register') ? (...a) => { providers.add(key); return new Disposable() } : String(key).startsWith('on') ? event : class {} })
const vscode = new Proxy(known, { get: (o, key) => key in o ? (['languages', 'workspace', 'window'].includes(key) ? inert(key, o[key]) : o[key]) : typeof key === 'symbol' || key === 'then' ? undefined : new Proxy(class {}, { get: (c, k) => k in c || typeof k === 'symbol' ? c[k] : 0 }) })
const load = Module._load
Module._load = function (name, ...rest) { return name === 'vscode' ? vscode : load.call(this, name, ...rest) }

const wait = async (what, done) => {
  for (let i = 0; i < 400; i++) { if (done()) return; await new Promise(resolve => setTimeout(resolve, 50)) }
  throw new Error('timed out waiting for ' + what + '; errors shown: ' + JSON.stringify(errors))
}
async function main () {
  const extension = require(extensionPath)
  const context = { subscriptions: [] }
  await extension.activate(context)
  await wait('diagnostics', () => shown.size >= docs.length)
  const first = [...shown].map(([uri, list]) => ({ uri, list: list.map(d => ({ line: d.range.start.line, message: d.message, code: d.code?.value ?? d.code })) }))
  const lens = { args: ['run', 'a.yaml'], cwd: '/tmp', inputs: [{ name: 'who', type: 'text' }, { name: 'n', type: 'list[int]' }] }
  await commands.get('qtype.runInTerminal')(lens)
  await commands.get('qtype.runInTerminal')(lens) // the user closes the box
  shown.clear()
  await commands.get('qtype.restart')()
  await wait('diagnostics after a restart', () => shown.size >= docs.length)
  settings = { path: '/no/such/qtype' }
  for (let i = 0; i < 3; i++) configured.fire({ affectsConfiguration: key => key === 'qtype.path' }) // as while the user types the path
  await wait('an error', () => errors.length > 0)
  await extension.deactivate()
  console.log(JSON.stringify({ first, providers: [...providers].sort(), errors, started }))
}
main().then(() => process.exit(0), e => { console.error(e); process.exit(1) })
