// Drives a language server with the client library of Visual Studio Code.
//   node client.cjs SERVER FOLDER
// Prints a line for each passed check and exits with status 1 at the first failure. NODE_PATH is the folder of the libraries.
'use strict'
const { spawn } = require('node:child_process')
const assert = require('node:assert')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const lsp = require('vscode-languageserver-protocol/node')

const [server, folder] = process.argv.slice(2)
const uri = name => pathToFileURL(path.join(folder, name)).toString()
const ok = what => console.log('ok', what)

const app = `id: shop
memories: !include memories.yaml
models:
  - {type: Model, id: assistant, provider: mock, rules: [{echo: true}]}
flows:
  - id: talk
    variables:
      - {id: message, type: ChatMessage}
      - {id: answer, type: ChatMessage}
    inputs: [message]
    outputs: [answer]
    steps:
      - type: LLMInference
        id: respond
        model: assistant
        memory: chat_memry
        inputs: [message]
        outputs: [answer]
`

// place returns the position of a word in a text.
function place (text, word, into = 0) {
  const at = text.indexOf(word) + into
  const before = text.slice(0, at).split('\n')
  return { line: before.length - 1, character: before.at(-1).length }
}

async function main () {
  const child = spawn(server, ['lsp', '--stdio'], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise(resolve => child.on('exit', resolve))
  const connection = lsp.createProtocolConnection(new lsp.StreamMessageReader(child.stdout), new lsp.StreamMessageWriter(child.stdin))
  connection.onError(e => { throw new Error(String(e)) })
  const waiting = []
  connection.onNotification(lsp.PublishDiagnosticsNotification.type, p => waiting.splice(0).forEach(f => f(p)))
  const published = async (name, version) => {
    for (;;) {
      const p = await new Promise(resolve => waiting.push(resolve))
      if (p.uri === uri(name) && (version === undefined || p.version === version)) return p.diagnostics
    }
  }
  connection.onRequest(lsp.RegistrationRequest.type, () => {})
  connection.listen()

  const { capabilities } = await connection.sendRequest(lsp.InitializeRequest.type, {
    processId: process.pid,
    rootUri: pathToFileURL(folder).toString(),
    workspaceFolders: [{ uri: pathToFileURL(folder).toString(), name: 'test' }],
    capabilities: {
      workspace: { workspaceEdit: { documentChanges: true }, didChangeWatchedFiles: { dynamicRegistration: true } },
      textDocument: { documentSymbol: { hierarchicalDocumentSymbolSupport: true } }
    }
  })
  assert.equal(capabilities.positionEncoding, lsp.PositionEncodingKind.UTF16)
  await connection.sendNotification(lsp.InitializedNotification.type, {})
  ok('initialize')

  let found = published('app.qtype.yaml', 1)
  await connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, {
    textDocument: { uri: uri('app.qtype.yaml'), languageId: 'yaml', version: 1, text: app }
  })
  const [diagnostic] = await found
  assert.equal(diagnostic.code, 'QT202')
  assert.equal(diagnostic.severity, lsp.DiagnosticSeverity.Error)
  assert.deepEqual(diagnostic.range.start, place(app, 'chat_memry'))
  ok('diagnostics')

  const textDocument = { uri: uri('app.qtype.yaml') }
  const actions = await connection.sendRequest(lsp.CodeActionRequest.type, { textDocument, range: diagnostic.range, context: { diagnostics: [diagnostic] } })
  const [edit] = actions[0].edit.documentChanges[0].edits
  assert.equal(edit.newText, 'chat_memory')
  ok('code actions')

  found = published('app.qtype.yaml', 2)
  await connection.sendNotification(lsp.DidChangeTextDocumentNotification.type, {
    textDocument: { uri: textDocument.uri, version: 2 }, contentChanges: [{ range: edit.range, text: edit.newText }]
  })
  assert.deepEqual(await found, [])
  const fixed = app.replace('chat_memry', 'chat_memory')
  ok('incremental edits')

  const at = (word, into) => ({ textDocument, position: place(fixed, word, into) })
  const list = await connection.sendRequest(lsp.CompletionRequest.type, at('memory: chat_memory', 'memory: '.length))
  assert.deepEqual(list.items.map(i => i.label), ['chat_memory'])
  ok('completion')

  const hover = await connection.sendRequest(lsp.HoverRequest.type, at('memory: chat_memory', 10))
  assert.match(hover.contents.value, /chat_memory.*memory/)
  ok('hover')

  const [definition] = await connection.sendRequest(lsp.DefinitionRequest.type, at('memory: chat_memory', 10))
  assert.equal(definition.uri, uri('memories.yaml'))
  ok('definition through an include')

  const places = await connection.sendRequest(lsp.ReferencesRequest.type, { ...at('{id: message', 6), context: { includeDeclaration: true } })
  assert.equal(places.length, 3)
  ok('references')

  const rename = await connection.sendRequest(lsp.RenameRequest.type, { ...at('memory: chat_memory', 10), newName: 'talks' })
  assert.deepEqual(rename.documentChanges.map(c => [c.textDocument.uri, c.textDocument.version, c.edits.length]),
    [[uri('app.qtype.yaml'), 2, 1], [uri('memories.yaml'), null, 1]])
  await assert.rejects(connection.sendRequest(lsp.RenameRequest.type, { ...at('{id: message', 6), newName: 'answer' }), /already taken/)
  ok('rename')

  const symbols = await connection.sendRequest(lsp.DocumentSymbolRequest.type, { textDocument })
  assert.deepEqual(symbols[0].children.map(s => s.name), ['assistant', 'talk'])
  ok('symbols')

  const { data } = await connection.sendRequest(lsp.SemanticTokensRequest.type, { textDocument })
  assert.ok(data.length > 0 && data.length % 5 === 0)
  ok('semantic tokens')

  const edits = await connection.sendRequest(lsp.DocumentFormattingRequest.type, { textDocument, options: { tabSize: 2, insertSpaces: true } })
  assert.deepEqual(edits, [])
  ok('formatting')

  const pulled = await connection.sendRequest(lsp.DocumentDiagnosticRequest.type, { textDocument })
  assert.deepEqual([pulled.kind, pulled.items], ['full', []])
  ok('pulled diagnostics')

  await assert.rejects(connection.sendRequest('no/such', {}), e => e.code === lsp.ErrorCodes.MethodNotFound)
  ok('unknown methods')

  await connection.sendRequest(lsp.ShutdownRequest.type)
  await connection.sendNotification(lsp.ExitNotification.type)
  assert.equal(await ended, 0)
  ok('shutdown and exit')
}

main().then(() => process.exit(0), e => { console.error(e); process.exit(1) })
