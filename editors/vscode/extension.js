'use strict'

// Starts `qtype lsp` and hands it every qtype document, and every YAML file that
// one includes. What the server can do is the server's business.

const vscode = require('vscode')
const { LanguageClient } = require('vscode-languageclient/node')

let client

// start runs the language server that the settings name.
async function start () {
  const settings = vscode.workspace.getConfiguration('qtype')
  const server = { command: settings.get('path', 'qtype'), args: ['lsp'] }
  client = new LanguageClient('qtype', 'qtype', server, {
    documentSelector: [
      { language: 'qtype' },
      { language: 'yaml' } // parts of documents; the server leaves other YAML alone
    ]
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
  await running?.stop()
}

async function restart () {
  await stop()
  await start()
}

async function activate (context) {
  context.subscriptions.push(
    vscode.commands.registerCommand('qtype.restart', restart),
    vscode.workspace.onDidChangeConfiguration(e => { if (e.affectsConfiguration('qtype.path')) restart() })
  )
  await start()
}

module.exports = { activate, deactivate: stop }
