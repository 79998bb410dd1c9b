import { pathToFileURL } from 'node:url'
import AxeBuilder from '@axe-core/playwright'
import { expect, test, type Page } from '@playwright/test'

const folder = process.env.QTYPE_PLAYGROUND!
const editor = (page: Page) => page.getByTestId('document')

const app = `id: shop
memories:
  - {id: talk_memory, policy: token_window, max_tokens: 60}
models:
  - {type: Model, id: clerk, provider: mock, rules: [{echo: true}]}
flows:
  - id: talk
    variables:
      - {id: message, type: ChatMessage}
      - {id: answer, type: ChatMessage}
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: respond, model: clerk, memory: talk_memory, inputs: [message], outputs: [answer]}
`

/** write makes a text the document. */
async function write(page: Page, text: string) {
  await editor(page).fill(text)
}

// No page has an error in the console or a request to another server.
let problems: string[] = []
test.beforeEach(({ page, baseURL }) => {
  problems = []
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('console', (message) => { if (message.type() === 'error') problems.push(message.text()) })
  page.on('request', (request) => { if (!/^(data|blob|file):/.test(request.url()) && !request.url().startsWith(baseURL!)) problems.push(request.url()) })
  page.on('dialog', (dialog) => { problems.push(`dialog ${dialog.message()}`); void dialog.dismiss() })
})
test.afterEach(() => expect(problems).toEqual([]))

test('an example is checked, drawn and replayed', async ({ page }) => {
  await page.goto('/')
  await expect(page.getByRole('status').first()).toHaveText('No problems')
  const picture = page.getByRole('img', { name: /^Flow of chat/ })
  await expect(picture).toBeVisible()
  expect(await picture.evaluate((image: HTMLImageElement) => image.decode().then(() => image.naturalWidth))).toBeGreaterThan(100)
  await expect(page.locator('#window li')).not.toHaveCount(0)
  await page.getByLabel('Example').selectOption('context')
  await expect(page.getByRole('img', { name: /^Flow of context/ })).toBeVisible()
})

test('a misspelt id has a diagnostic with the suggestion, which corrects it', async ({ page }) => {
  await page.goto('/')
  await write(page, app.replace('memory: talk_memory', 'memory: talk_memry'))
  await expect(page.getByRole('status').first()).toContainText('1 error')
  const problem = page.locator('#problems .is-error')
  await expect(problem).toContainText('talk_memry')
  await expect(problem).toContainText('talk_memory')
  const line = app.split('\n')[13]
  await expect(problem.getByRole('button', { name: `Go to line 14, column ${line.indexOf('talk_memory') + 1}` })).toBeVisible()
  const marked = page.locator('.cm-lintRange-error')
  await expect(marked).toHaveText('talk_memry')
  await marked.hover()
  await page.getByRole('button', { name: /Replace by talk_memory/ }).click()
  await expect(page.getByRole('status').first()).not.toContainText('1 error')
  await expect(editor(page)).toContainText('memory: talk_memory')
})

test('a code is explained', async ({ page }) => {
  await page.goto('/')
  await write(page, 'id: a\nflws: []\n')
  await page.getByRole('button', { name: /^Explain QT/ }).first().click()
  await expect(page.locator('#explanation')).toContainText('Wrong')
})

test('ids and keys are completed while typing', async ({ page }) => {
  await page.goto('/')
  await write(page, app.replace(', memory: talk_memory', ''))
  await expect(page.getByRole('status').first()).not.toContainText('Loading')
  await editor(page).press('Control+End')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('End')
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.type(', memory: ')
  await page.keyboard.press('Control+Space')
  await expect(page.locator('.cm-tooltip-autocomplete li')).toHaveText([/talk_memory/])
  await page.waitForTimeout(100) // CodeMirror ignores keys for 75 ms after it shows proposals
  await page.keyboard.press('Enter')
  await expect(editor(page)).toContainText('memory: talk_memory}')
})

test('the format button formats', async ({ page }) => {
  await page.goto('/')
  await write(page, app.replace('id: shop', 'id:    shop'))
  await expect(page.getByRole('button', { name: 'Format' })).toBeEnabled()
  await page.getByRole('button', { name: 'Format' }).click()
  await expect(editor(page)).toContainText('id: shop')
})

test('the gauge follows the slider, and a wrong line is named', async ({ page }) => {
  await page.goto('/')
  await write(page, app)
  const fill = page.locator('#fill')
  await expect(fill).toContainText('of 60 tokens')
  await expect(page.locator('#counts')).toContainText('counted as the model counts') // the vocabulary was loaded
  const gauge = page.getByLabel('Window', { exact: true })
  const last = await gauge.evaluate((meter: HTMLMeterElement) => meter.value)
  await page.getByLabel(/^After line/).fill('1')
  await expect(page.locator('#window li')).toHaveCount(1)
  const first = await gauge.evaluate((meter: HTMLMeterElement) => meter.value)
  expect(first).toBeGreaterThan(0)
  expect(first).toBeLessThan(last)
  await page.getByLabel(/^Transcript/).fill('{"role": "user", "content": "a"}\n{"op": "fly"}')
  await expect(page.locator('#transcript-error')).toContainText('Line 2: unknown operation')
})

test('a link carries the document', async ({ page, context }) => {
  await page.goto('/')
  await write(page, app.replace('id: shop', 'id: linked # grüße'))
  await page.getByRole('button', { name: 'Copy link' }).click()
  await expect(page).toHaveURL(/#d=/)
  const other = await context.newPage()
  await other.goto(page.url())
  await expect(editor(other)).toContainText('id: linked # grüße')
  await expect(other.getByRole('img', { name: /^Flow of linked/ })).toBeVisible()
  await other.goto('/#d=not-a-document')
  await other.reload()
  await expect(other.getByRole('status').first()).not.toContainText('Loading')
})

test('a document with markup does nothing', async ({ page }) => {
  const evil = '</script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>'
  await page.goto('/')
  await write(page, app.replace('id: shop', `id: shop\ndescription: '${evil}'`).replace('id: talk\n', `id: talk\n    description: '${evil}'\n`))
  await expect(page.getByRole('img', { name: /^Flow of shop/ })).toBeVisible()
  await write(page, app.replaceAll('talk_memory', `"${evil}"`).replace('id: clerk', `'${evil}': 1, id: clerk`))
  await expect(page.locator('#problems')).toContainText('alert(1)')
  await page.getByLabel(/^Transcript/).fill(`{"role": "user", "content": "${evil}"}`)
  await write(page, app)
  await expect(page.locator('#window')).toContainText('alert(1)')
  expect(await page.evaluate(() => document.querySelectorAll('main script, main svg, img[src="x"]').length)).toBe(0)
})

test('the page opens from a folder of files', async ({ page }) => {
  await page.goto(`${pathToFileURL(folder).href}/index.html`)
  await expect(page.getByRole('status').first()).toHaveText('No problems')
  await expect(page.locator('#counts')).toContainText('counted as the model counts')
})

for (const scheme of ['light', 'dark'] as const) {
  test(`axe finds no problem in ${scheme} colours`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme })
    await page.goto('/')
    await write(page, app.replace('memory: talk_memory', 'memory: talk_memry'))
    await expect(page.locator('#problems .is-error')).toBeVisible()
    const found = await new AxeBuilder({ page }).analyze()
    expect(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`)).toEqual([])
  })
}
