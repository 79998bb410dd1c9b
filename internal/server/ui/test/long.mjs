// Compares the page of a long conversation with that of a short one: node test/long.mjs ADDRESS LONG SHORT [ROUNDS].
// ADDRESS is that of a server with the flow talk, LONG and SHORT are sessions, as `qtype memory import` makes them.
// It prints medians: when the page is painted first and its newest message is there, in milliseconds; and, for one
// answer, the CPU time of the page's thread, the requests, the bytes of their answers, and the nodes of the page.
import { chromium } from 'playwright-core'

const [base, long, short, rounds = '5'] = process.argv.slice(2)
const measured = { [long]: [], [short]: [] }
const browser = await chromium.launch({ executablePath: process.env.QTYPE_CHROMIUM ?? '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'] })

async function measure(session) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
  const protocol = await page.context().newCDPSession(page)
  await protocol.send('Performance.enable', { timeDomain: 'threadTicks' })
  const cpu = async () => 1000 * (await protocol.send('Performance.getMetrics')).metrics.find((m) => m.name === 'TaskDuration').value
  const began = performance.now()
  await page.goto(`${base.replace(/\/?$/, '/')}chat/talk/${session}`)
  await page.getByRole('article', { name: 'Assistant' }).last().waitFor()
  const shown = performance.now() - began
  const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime)
  await page.waitForLoadState('networkidle')
  const before = await cpu()
  const answered = []
  page.on('requestfinished', (r) => answered.push(r.sizes()))
  const answers = await page.getByRole('article', { name: 'Assistant' }).count()
  await page.fill('#composer', 'hello')
  await page.keyboard.press('Enter')
  await page.getByRole('article', { name: 'Assistant' }).nth(answers).waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
  await page.waitForLoadState('networkidle')
  const answer = (await cpu()) - before
  const bytes = (await Promise.all(answered)).reduce((n, sizes) => n + sizes.responseBodySize, 0)
  const one = { painted, shown, answer, requests: answered.length, bytes, nodes: await page.evaluate(() => document.querySelectorAll('*').length) }
  await page.close()
  return one
}

for (let i = 0; i < Number(rounds); i++) for (const session of [long, short]) measured[session].push(await measure(session))
for (const session of [long, short]) {
  const median = (key) => measured[session].map((m) => m[key]).sort((a, b) => a - b)[Math.floor(measured[session].length / 2)]
  console.log(session, Object.fromEntries(Object.keys(measured[session][0]).map((key) => [key, Math.round(median(key))])))
}
await browser.close()
