// Drives the extension in a real Visual Studio Code: code-server runs the editor,
// Chromium displays it, and the script types into it. Each step checks the screen or
// the saved file.
//
//     node editors/vscode/test/editor.mjs FOLDER [STEP…]
//
// Steps depend on the steps before them: list those, too, to run a part.
// FOLDER has the npm packages code-server, playwright-core and @vscode/vsce;
// docs/editors.md describes how to make it. QTYPE is the path of the program
// (bin/qtype), CHROMIUM that of the browser (/usr/bin/chromium), and SHOTS a folder
// for a screenshot of each step.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const [folder, ...only] = process.argv.slice(2)
if (!folder) {
  console.error('usage: node editor.mjs FOLDER [STEP…]')
  process.exit(2)
}
const extension = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const qtype = path.resolve(process.env.QTYPE ?? path.join(extension, '../../bin/qtype'))
const browser = process.env.CHROMIUM ?? '/usr/bin/chromium'
const shots = process.env.SHOTS
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'qtype-vscode-'))
const { chromium } = createRequire(path.resolve(folder, 'x.js'))('playwright-core')

const app = `id: support
models: !include models.yaml
memories:
  - id: chat_memory
    token_limit: 4000
    token_flush_size: 500
flows:
  - id: talk   
    interface: {type: Conversational}
    variables:
      - {id: question, type: ChatMessage}
      - {id: answer, type: ChatMessage}
    inputs: [question]
    outputs: [answer]
    steps:
      - id: respond
        type: LLMInference
        model: fast_modle
        memory: chat_memory
        inputs: [question]
        outputs: [answer]
`
const models = `- type: Model
  id: fast_model
  provider: mock
`

// write writes a file in the folder that the editor opens.
function write (name, text) {
  fs.mkdirSync(path.join(work, 'project'), { recursive: true })
  fs.writeFileSync(path.join(work, 'project', name), text)
}

const read = name => fs.readFileSync(path.join(work, 'project', name), 'utf8')

// until waits for a condition; its error shows the last value.
async function until (what, look) {
  const end = Date.now() + 20_000
  for (;;) {
    const got = await look()
    if (got === true) return
    if (Date.now() > end) assert.fail(`${what}: ${typeof got === 'string' ? got : JSON.stringify(got)}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

const saved = (name, text) => until(`${name} contains ${JSON.stringify(text)}`, () => read(name).includes(text) || read(name))

// install packages the extension as its README describes, and installs it.
function install (server) {
  const copy = path.join(work, 'extension')
  fs.cpSync(extension, copy, { recursive: true, filter: from => !/node_modules|\.vsix$/.test(from) })
  const quiet = { cwd: copy, stdio: ['ignore', 'ignore', 'inherit'] }
  execFileSync('npm', ['install', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], quiet)
  execFileSync(path.resolve(folder, 'node_modules/.bin/vsce'), ['package', '--out', 'qtype.vsix'], quiet)
  execFileSync(process.execPath, [...server, '--install-extension', path.join(copy, 'qtype.vsix')], quiet)
}

const freePort = () => new Promise(resolve => {
  const s = net.createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => resolve(port)) })
})

// Editor simulates the user of the editor.
class Editor {
  constructor (page) { this.page = page }

  async press (...keys) { for (const k of keys) await this.page.keyboard.press(k) }
  async type (text) { await this.page.keyboard.type(text, { delay: 15 }) }

  // pick enters a file, a command after >, or a line after : in the command palette.
  async pick (text) {
    await this.press('F1')
    const box = this.page.locator('.quick-input-widget input[type=text]')
    await box.waitFor()
    await box.fill(text)
    if (!text.startsWith(':')) await this.page.locator('.quick-input-list .monaco-list-row.focused').first().waitFor()
    await this.press('Enter')
    await this.page.locator('.quick-input-widget').waitFor({ state: 'hidden' })
  }

  async open (name) {
    await this.pick(name)
    await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor()
    await this.page.locator('.editor-instance .view-line').first().waitFor()
  }

  // at moves the cursor before or after the first occurrence of a text in the saved file.
  async at (name, text, after = false) {
    const before = read(name).slice(0, read(name).indexOf(text) + (after ? text.length : 0)).split('\n')
    await this.pick(`:${before.length}:${before.at(-1).length + 1}`)
  }

  async save () { await this.press('Control+s') }

  // texts returns the texts of the elements that match a selector.
  async texts (selector) { return (await this.page.locator(selector).allInnerTexts()).map(t => t.replace(/\s+/g, ' ').trim()) }

  async shows (selector, text) {
    await until(`${selector} shows ${JSON.stringify(text)}`, async () => {
      const all = await this.texts(selector)
      return all.some(t => t.includes(text)) || all
    })
  }

  async shot (name) {
    if (shots) await this.page.screenshot({ path: path.join(shots, `${name}.png`) })
  }
}

const steps = {
  async diagnostics (e) {
    await e.open('app.qtype.yaml')
    await e.pick('>View: Toggle Problems')
    await e.shows('.markers-panel .monaco-list-row', 'no model has the id "fast_modle"')
    await e.shows('.markers-panel .monaco-list-row', 'QT202')
    assert.ok(await e.page.locator('.squiggly-error').count() > 0, 'the word is underlined')
  },

  async hover (e) {
    await e.at('app.qtype.yaml', 'token_flush_size')
    await e.pick('>Show or Focus Hover')
    await e.shows('.monaco-hover:not(.hidden)', 'token_flush_size')
    await e.shot('hover-open')
    await e.press('Escape')
  },

  async 'quick fix' (e) {
    await e.at('app.qtype.yaml', 'fast_modle')
    await e.press('Control+.')
    await e.shows('.action-widget .monaco-list-row', 'fast_model')
    await e.shot('quick-fix-open')
    await e.press('Enter')
    await e.save()
    await saved('app.qtype.yaml', 'model: fast_model\n')
    await until('no problem is left', async () => (await e.texts('.markers-panel .monaco-list-row')).length === 0)
  },

  async completion (e) {
    await e.at('app.qtype.yaml', 'model: fast_model', true)
    for (let i = 0; i < 'fast_model'.length; i++) await e.press('Backspace')
    await e.press('Control+Space')
    await e.shows('.suggest-widget.visible .monaco-list-row', 'fast_model')
    await e.shot('completion-open')
    await e.press('Enter')
    await e.save()
    await saved('app.qtype.yaml', 'model: fast_model\n')
  },

  async 'go to definition' (e) {
    await e.at('app.qtype.yaml', 'model: fast_model', true)
    await e.press('F12')
    await e.page.locator('.tab.active[data-resource-name="models.yaml"]').waitFor()
    await e.open('app.qtype.yaml')
  },

  async rename (e) {
    await e.at('app.qtype.yaml', 'model: fast_model', true)
    await e.press('F2')
    const box = e.page.locator('.rename-box input')
    await box.waitFor()
    await box.fill('quick_model')
    await e.shot('rename-open')
    await e.press('Enter')
    await until('both files are changed', async () => (await e.texts('.view-line')).some(t => t.includes('quick_model')))
    await e.pick('>File: Save All Files')
    await saved('app.qtype.yaml', 'model: quick_model\n')
    await saved('models.yaml', 'id: quick_model\n')
  },

  async formatting (e) {
    await e.open('app.qtype.yaml')
    await e.pick('>Format Document')
    await until('the trailing spaces are gone', async () => (await e.page.locator('.view-line', { hasText: /id:\stalk$/ }).count()) === 1)
    await e.save()
    await saved('app.qtype.yaml', '- id: talk\n')
  },

  async symbols (e) {
    await e.press('Control+Shift+o')
    await e.shows('.quick-input-list .monaco-list-row', 'chat_memory')
    await e.press('Escape')
  },

  async colours (e) {
    await e.open('app.qtype.yaml')
    await until('a variable and a type have different colours', async () => {
      const of = text => e.page.locator('.view-line span span', { hasText: new RegExp(`^\\s*${text}\\s*$`) }).first().evaluate(n => getComputedStyle(n).color)
      const [variable, type] = [await of('question'), await of('ChatMessage')]
      return variable !== type || variable
    })
  },

  async 'plain YAML' (e) {
    await e.open('plain.yaml')
    await e.shows('.markers-panel .monaco-list-row', 'model "fast" has no key "modle_id"')
  },

  async restart (e) {
    await e.pick('>qtype: Restart the language server')
    await e.shows('.markers-panel .monaco-list-row', 'model "fast" has no key "modle_id"')
  },

  async 'remote includes' (e) {
    const remote = http.createServer((_, answer) => answer.end(models + '  modle_id: x\n')).listen(0, '127.0.0.1')
    await once(remote, 'listening')
    write('remote.qtype.yaml', `id: remote\nmodels: !include http://127.0.0.1:${remote.address().port}/models.yaml\n`)
    await e.open('remote.qtype.yaml')
    await e.shows('.markers-panel .monaco-list-row', 'remote includes are disabled')
    configure({ 'qtype.remoteIncludes': true })
    await e.shows('.markers-panel .monaco-list-row', '/models.yaml:4:3: model "fast_model" has no key "modle_id"')
    remote.close()
  },

  async 'no program' (e) {
    configure({ 'qtype.path': '/no/such/qtype' })
    await e.shows('.notifications-toasts .notification-list-item', 'cannot start "/no/such/qtype lsp"')
  }
}

const settings = {
  'qtype.path': qtype,
  'workbench.startupEditor': 'none',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'extensions.ignoreRecommendations': true,
  'telemetry.telemetryLevel': 'off'
}

// configure writes the settings of the folder, which the editor watches.
function configure (changed) {
  fs.mkdirSync(path.join(work, 'project/.vscode'), { recursive: true })
  write('.vscode/settings.json', JSON.stringify(changed))
}

async function main () {
  write('app.qtype.yaml', app)
  write('models.yaml', models)
  write('remote.qtype.yaml', 'id: remote\n') // the step replaces it; the palette lists files that exist at the start
  write('plain.yaml', 'id: plain\nmodels:\n  - type: Model\n    id: fast\n    provider: mock\n    modle_id: x\nflows: []\n')
  configure({})
  fs.mkdirSync(path.join(work, 'data/User'), { recursive: true })
  fs.writeFileSync(path.join(work, 'data/User/settings.json'), JSON.stringify(settings))
  const server = [path.resolve(folder, 'node_modules/code-server/out/node/entry.js'),
    '--user-data-dir', path.join(work, 'data'), '--extensions-dir', path.join(work, 'extensions'), '--config', path.join(work, 'config.yaml')]
  const port = await freePort()
  const log = fs.openSync(path.join(work, 'code-server.log'), 'w')
  let running, shown
  try {
    install(server)
    running = spawn(process.execPath, [...server, '--auth', 'none', '--bind-addr', `127.0.0.1:${port}`,
      '--disable-telemetry', '--disable-update-check', '--disable-workspace-trust'], { stdio: ['ignore', log, log] })
    const address = `http://127.0.0.1:${port}`
    await until('the editor is running', () => fetch(address + '/healthz').then(a => a.ok, () => false))
    shown = await chromium.launch({ executablePath: browser, args: ['--no-sandbox'] })
    const page = await shown.newPage({ viewport: { width: 1300, height: 850 } })
    await page.goto(`${address}/?folder=${path.join(work, 'project')}`)
    await page.locator('.monaco-workbench .explorer-viewlet').waitFor({ timeout: 60_000 })
    const editor = new Editor(page)
    for (const [name, step] of Object.entries(steps)) {
      if (only.length > 0 && !only.includes(name)) continue
      try {
        await step(editor)
      } catch (problem) {
        await editor.shot('failed')
        throw new Error(`${name}: ${problem.message}`, { cause: problem })
      }
      await editor.shot(name.replaceAll(' ', '-'))
      console.log(`ok  ${name}`)
    }
  } finally {
    await shown?.close()
    running?.kill()
    fs.rmSync(work, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

await main()
