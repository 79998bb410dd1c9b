'use strict'

// Starts `qtype lsp` and sends it qtype documents, and YAML files because documents
// include them. All features are implemented by the server.

const vscode = require('vscode')
const { LanguageClient } = require('vscode-languageclient/node')

let client
let last = Promise.resolve() // the last operation: a start waits for the preceding stop

// start starts the configured language server.
async function start () {
  const settings = vscode.workspace.getConfiguration('qtype')
  const server = { command: settings.get('path', 'qtype'), args: ['lsp'] }
  client = new LanguageClient('qtype', 'qtype', server, {
    documentSelector: [
      { language: 'qtype' },
      { language: 'yaml' } // parts of documents; the server ignores other YAML
    ],
    initializationOptions: { remoteIncludes: settings.get('remoteIncludes', false) },
    synchronize: { configurationSection: 'qtype' } // settings change without a restart
  })
  try {
    await client.start()
  } catch (problem) {
    client = undefined
    vscode.window.showErrorMessage(`qtype: cannot start "${server.command} lsp": ${problem?.message ?? problem}. Set qtype.path to the program.`)
  }
}

async function stop () {
  const running = client
  client = undefined
  try {
    await running?.stop()
  } catch { // it has exited already
  }
}

// then runs operations in sequence: settings change with each typed character.
function then (...things) {
  for (const thing of things) last = last.then(thing)
  return last
}

const restart = () => then(stop, start)

async function activate (context) {
  context.subscriptions.push(
    vscode.commands.registerCommand('qtype.restart', restart),
    vscode.workspace.onDidChangeConfiguration(e => { if (e.affectsConfiguration('qtype.path')) restart() })
  )
  await then(start)
}

module.exports = { activate, deactivate: () => then(stop) }
