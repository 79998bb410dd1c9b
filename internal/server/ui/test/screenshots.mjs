// Takes pictures of all pages in light and dark, at the width of a desktop and of a phone:
// node test/screenshots.mjs FOLDER [NAME-SIZE-COLOR...]. It needs the mock server (npm run mock),
// or the address of another one in QTYPE_UI_URL.
import { chromium } from 'playwright-core'

const base = (process.env.QTYPE_UI_URL ?? 'http://127.0.0.1:8765').replace(/\/?$/, '/')
const [folder, ...only] = process.argv.slice(2)
const sizes = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } }
const rows = Array.from({ length: 40 }, (_, i) => `"${['The parcel is late', 'please fail', 'A torn book', 'I want my money'][i % 4]}, order HL-${8800 + i}",${i % 2 ? 'yes' : 'no'}`)

const say = async (page, text) => {
  await page.fill('#composer', text)
  await page.keyboard.press('Enter')
}

const pages = {
  home: (page) => page.goto(base),
  chat: async (page) => {
    await page.goto(`${base}chat/triage`)
    await say(page, 'Where is my parcel? The order is HL-8812.')
    await page.getByRole('button', { name: 'Trace' }).waitFor()
    await say(page, 'Show me a table of delivery times.')
    await page.locator('.katex-display').waitFor()
    await page.getByRole('button', { name: 'Trace' }).waitFor()
  },
  context: async (page) => {
    await page.goto(`${base}chat/triage/c-014`)
    await page.getByText('not in the window').first().click()
  },
  approval: async (page) => {
    await page.goto(`${base}chat/triage`)
    await say(page, 'I want a refund for order HL-8812.')
    await page.getByRole('button', { name: 'Approve' }).waitFor()
  },
  form: async (page) => {
    await page.goto(`${base}form/classify`)
    await page.getByRole('button', { name: /^The parcel arrived/ }).click()
    await page.getByRole('button', { name: 'Code' }).click()
    await page.getByRole('button', { name: 'Run' }).click()
    await page.getByText('We treat this').waitFor()
  },
  batch: async (page) => {
    await page.goto(`${base}batch/classify`)
    await page.setInputFiles('input[type=file]', { name: 'messages.csv', mimeType: 'text/csv', buffer: Buffer.from(`message,urgent\n${rows.join('\n')}\n`) })
    await page.getByRole('button', { name: 'Start 40 rows' }).click()
    await page.getByText(/[12]\d done/).waitFor()
  },
  graph: async (page) => {
    await page.goto(`${base}graph/triage`)
    await page.locator('[data-node]').first().waitFor()
  },
  trace: async (page) => {
    await page.goto(`${base}history/triage`)
    await page.getByRole('main').getByRole('listitem').last().getByRole('link').first().click()
    await page.getByRole('list', { name: 'Spans' }).waitFor()
  },
}

const browser = await chromium.launch({ executablePath: process.env.QTYPE_CHROMIUM ?? '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'] })
for (const [name, show] of Object.entries(pages)) {
  for (const [size, viewport] of Object.entries(sizes)) {
    for (const colorScheme of ['light', 'dark']) {
      const file = `${name}-${size}-${colorScheme}`
      if (only.length > 0 && !only.includes(file)) continue
      const page = await browser.newPage({ viewport, colorScheme, hasTouch: size === 'phone' })
      await show(page)
      await page.mouse.move(0, 0)
      await page.waitForTimeout(700) // animations
      await page.screenshot({ path: `${folder}/${file}.png` })
      await page.close()
    }
  }
}
await browser.close()
