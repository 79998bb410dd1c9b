// Tests against a running `qtype serve test/app/app.qtype.yaml --ephemeral`.
import { answered, checkAccess, expect, say, shown, submit, test } from './base'

test('the start page describes the application', async ({ page }) => {
  await page.goto('')
  await expect(page.getByRole('heading', { name: 'Bookshop' })).toBeVisible()
  await page.getByRole('button', { name: /Where is order 8812/ }).click()
  await expect(page.getByLabel('Message', { exact: true })).toHaveValue('Where is order 8812?')
})

test('a conversation with a tool is stored, and its context shown', async ({ page }) => {
  await page.goto('chat/talk')
  await say(page, 'Where is order 8812?')
  const answer = page.getByRole('article', { name: 'Assistant' })
  await expect(answer.locator('strong', { hasText: 'in transit' })).toBeVisible()
  await expect(answer.getByRole('button', { name: /find_order/ })).toContainText('done')
  await expect(answer.getByRole('button', { name: /^Reasoning/ })).toBeVisible()
  await expect(page.getByRole('meter')).toBeVisible()
  await expect(page.getByRole('button', { name: /^user, turn 1, .* in the window/ })).toBeVisible()
  await page.reload()
  await expect(answer.locator('strong', { hasText: 'in transit' })).toBeVisible()
  await expect(answer.getByRole('button', { name: /find_order/ })).toContainText('done')
  await checkAccess(page)
})

test('messages that no longer fit are explained', async ({ page }) => {
  await page.goto('chat/talk')
  for (let i = 1; i <= 8; i++) await say(page, `This is message number ${i} of a customer who writes about several parcels`)
  await page.getByRole('button', { name: /The model no longer sees/ }).click()
  const panel = page.getByRole('complementary', { name: 'Context' })
  await expect(panel.getByText(/^The model (no longer sees this message|sees only a summary of this message)$/)).toBeVisible()
  await expect(panel.getByText('Flushed so far')).toBeVisible()
  await checkAccess(page)
})

for (const [name, button, status] of [['approved', 'Approve', 'done'], ['denied', 'Deny', /denied|failed|done/]] as const) {
  test(`a tool call is ${name}`, async ({ page }) => {
    await page.goto('chat/talk')
    await submit(page, 'Please refund order 8812')
    await expect(page.getByText('waiting for you')).toBeVisible()
    await page.reload()
    await page.getByRole('button', { name: button }).click()
    await expect(page.getByRole('button', { name: /refund\(/ }).first()).toContainText(status)
    await expect(shown(page, /Here is what I found/)).toBeVisible()
    await answered(page)
  })
}

test('a reload in the middle of an answer continues it', async ({ page }) => {
  await page.goto('chat/talk')
  await submit(page, 'a slow answer')
  await expect(shown(page, /One two three/)).toBeVisible()
  await page.reload()
  await expect(page.getByRole('article', { name: 'You' })).toContainText('a slow answer')
  await expect(shown(page, /twenty-five\./)).toBeVisible()
  await expect(page.getByRole('article', { name: 'Assistant' })).toHaveCount(1)
  await answered(page)
})

test('an answer is stopped, and a message edited', async ({ page }) => {
  await page.goto('chat/talk')
  await say(page, 'hello')
  await submit(page, 'a slow answer')
  await expect(shown(page, /One two three/)).toBeVisible()
  await page.getByRole('button', { name: 'Stop' }).click()
  await answered(page)
  await page.keyboard.press('ArrowUp')
  await page.getByLabel('Edit the message').fill('Show me a table')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('cell', { name: 'Portugal' })).toBeVisible()
  await answered(page)
  await expect(page.getByRole('article', { name: 'You' })).toHaveCount(2)
})

test('an error of the model is shown', async ({ page }) => {
  await page.goto('chat/talk')
  await submit(page, 'please fail')
  await expect(page.getByRole('alert')).toContainText('the model rejected the request')
})

test('a retry replaces the turn', async ({ page }) => {
  await page.goto('chat/talk')
  await say(page, 'hello')
  await page.getByRole('button', { name: 'Retry' }).click()
  await expect(page.getByRole('button', { name: /turn 1, .* replaced/ }).first()).toBeVisible()
  await expect(page.getByRole('button', { name: /turn [2-9], .* in the window/ }).first()).toBeVisible()
  await expect(page.getByRole('article', { name: 'Assistant' })).toHaveCount(1)
})

test('conversations are renamed, forked, exported and deleted', async ({ page }) => {
  const name = `Talk ${Date.now()}`
  await page.goto('chat/talk')
  await say(page, 'hello')
  const open = page.locator('li', { has: page.locator('a[aria-current=page][href*="/chat/talk/"]') })
  await open.getByRole('button', { name: /^Actions for/ }).click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await page.getByLabel('Title').fill(name)
  await page.getByRole('button', { name: 'Rename' }).click()
  await expect(page.getByRole('link', { name })).toBeVisible()
  await open.getByRole('button', { name: `Actions for ${name}` }).click()
  const download = page.waitForEvent('download')
  await page.getByRole('menuitem', { name: 'Export' }).click()
  expect((await download).suggestedFilename()).toMatch(/\.jsonl$/)
  const before = page.url()
  await page.getByRole('button', { name: 'Fork from here' }).click()
  await expect(page).not.toHaveURL(before)
  await expect(shown(page, /I have noted that/)).toBeVisible()
  await page.goto(before)
  await open.getByRole('button', { name: `Actions for ${name}` }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await expect(page).toHaveURL(/chat\/talk$/)
})

test('a form sends lists and records', async ({ page }) => {
  await page.goto('form/classify')
  await page.getByRole('textbox', { name: /^message/ }).fill('A torn book')
  await page.getByRole('textbox', { name: /^amount/ }).fill('12.5')
  await page.getByRole('button', { name: 'Add a value' }).click()
  await page.getByRole('textbox', { name: /^1 text/ }).fill('books')
  await page.getByRole('textbox', { name: /^name/ }).fill('Ada')
  await page.getByLabel('due').fill('2026-03-31')
  await page.getByRole('button', { name: 'Run' }).click()
  const result = page.getByRole('region', { name: 'Result' })
  await expect(result.getByText('damaged')).toBeVisible()
  await expect(result.getByText('Ada')).toBeVisible()
  await checkAccess(page)
})

test('a batch runs rows, failed ones first', async ({ page }) => {
  await page.goto('batch/classify')
  const lines = ['message,urgent,tags,sender', ...['A torn book', 'please fail', 'Where is it'].map((m) => `${m},yes,a;b,"{""name"":""Ada""}"`)]
  await page.setInputFiles('input[type=file]', { name: 'rows.csv', mimeType: 'text/csv', buffer: Buffer.from(lines.join('\n')) })
  await page.getByRole('button', { name: 'Start 3 rows' }).click()
  await expect(page.getByText('2 done, 1 failed of 3 rows')).toBeVisible()
  const rows = page.getByRole('region', { name: 'Rows' }).getByRole('row')
  await expect(rows.nth(1)).toContainText('the model rejected the request')
  await expect(rows.nth(2)).toContainText('damaged')
})

test('the graph and the trace of a run are shown', async ({ page }) => {
  await page.goto('chat/talk')
  await say(page, 'hello')
  await page.getByRole('link', { name: 'Flow', exact: true }).click()
  await expect(page.locator('[data-node=help]')).toContainText('1 done')
  await expect(page.getByText('system_message:')).toBeVisible()
  await page.getByRole('link', { name: 'Runs' }).click()
  await page.getByRole('main').getByRole('link').first().click()
  await expect(page.getByRole('list', { name: 'Spans' }).getByRole('button').first()).toBeVisible()
  await checkAccess(page)
})

test('an answer shows the passages that it cites', async ({ page }) => {
  const rule = { chunk_id: 'c1', document_id: 'd1', content: 'Refunds are paid five working days after a return.', metadata: { file_name: 'returns.pdf', page: 3, heading_path: 'Returns > Refunds' } }
  expect((await page.request.post('flows/learn', { data: { rule } })).ok()).toBe(true)
  await page.goto('chat/advise')
  await say(page, 'When are refunds paid?')
  await expect(page.getByRole('article', { name: 'Assistant' }).locator('strong', { hasText: 'five days' })).toBeVisible()
  await page.getByRole('list', { name: 'Sources' }).getByRole('button', { name: /1\s*returns\.pdf, page 3/ }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByText('Returns > Refunds')).toBeVisible()
  await expect(dialog.getByText('five working days after a return')).toBeVisible()
  await checkAccess(page)
})
