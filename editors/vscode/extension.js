'use strict'

// Starts `qtype lsp` and hands it every qtype document, and every YAML file that
// one includes. What the server can do is the server's business.

const vscode = require('vscode')
const { LanguageClient } = require('vscode-languageclient/node')

let client
let last = Promise.resolve() // what was asked for last: a start waits for the stop before it

// start runs the language server that the settings name.
async function start () {
  const settings = vscode.workspace.getConfiguration('qtype')
  const server = { command: settings.get('path', 'qtype'), args: ['lsp'] }
  client = new LanguageClient('qtype', 'qtype', server, {
    documentSelector: [
      { language: 'qtype' },
      { language: 'yaml' } // parts of documents; the server leaves other YAML alone
    ],
    initializationOptions: { remoteIncludes: settings.get('remoteIncludes', false) },
    synchronize: { configurationSection: 'qtype' } // a changed setting reaches the server without a new start
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
  } catch { // it has ended by itself
  }
}

// then does one thing after the other: settings change with each key that is typed.
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
