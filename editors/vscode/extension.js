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

// runInTerminal runs the program for a code lens of the server, without a shell.
async function runInTerminal ({ args, cwd, inputs }) {
  if (!vscode.workspace.isTrusted) return vscode.window.showErrorMessage('qtype: the folder is not trusted, so nothing in it is run.')
  const values = {}
  for (const { name, type } of inputs) {
    const typed = await vscode.window.showInputBox({ title: `${name}: ${type}`, prompt: 'An input of the flow, as text or JSON', ignoreFocusOut: true })
    if (typed === undefined) return
    values[name] = parseInput(typed, type)
  }
  await vscode.workspace.saveAll(false) // the program reads the files
  const command = [...args, ...(inputs.length > 0 ? ['-i', JSON.stringify(values)] : [])]
  const program = vscode.workspace.getConfiguration('qtype').get('path', 'qtype')
  const folder = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(cwd)) ?? vscode.TaskScope.Workspace
  return vscode.tasks.executeTask(new vscode.Task({ type: 'process' }, folder, args.join(' '), 'qtype', new vscode.ProcessExecution(program, command, { cwd })))
}

// parseInput returns the value of what a user typed for a type: texts stay as typed.
function parseInput (typed, type) {
  if (type === 'text' || type === 'ChatMessage') return typed
  try {
    return JSON.parse(typed)
  } catch {
    return typed // the program converts it, or says what it expects
  }
}

async function activate (context) {
  context.subscriptions.push(
    vscode.commands.registerCommand('qtype.restart', restart),
    vscode.commands.registerCommand('qtype.runInTerminal', runInTerminal),
    vscode.workspace.onDidChangeConfiguration(e => { if (e.affectsConfiguration('qtype.path')) restart() })
  )
  await then(start)
}

module.exports = { activate, deactivate: () => then(stop) }
