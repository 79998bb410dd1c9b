import { answered, checkAccess, configure, expect, say, shown, submit, test } from './base'

test.beforeEach(({ page }) => configure(page, { reset: true, pace: 8 }))

test('a conversation streams Markdown, tools, reasoning and sources', async ({ page }) => {
  await page.goto('chat/triage')
  await expect(page.getByRole('heading', { name: 'Triage' })).toBeVisible()
  await say(page, 'Where is my parcel?')
  await expect(page).toHaveURL(/chat\/triage\/c-/)
  const answer = page.getByRole('article', { name: 'Assistant' })
  await expect(answer.locator('strong', { hasText: 'in transit' })).toBeVisible()
  await expect(answer.getByRole('link', { name: /Delivery times/ })).toHaveAttribute('href', 'https://example.com/delivery')
  const tool = answer.getByRole('button', { name: /find_order/ })
  await expect(tool).toContainText(/done · \d+ ms/)
  await tool.click()
  await expect(answer.getByText('"carrier"')).toBeVisible()
  await answer.getByRole('button', { name: /^Reasoning \(/ }).click()
  await expect(answer.getByText('I look up the order before I answer')).toBeVisible()
  // The conversation is in the list and the context panel has its window.
  await expect(page.getByRole('link', { name: /Where is my parcel\?.*now/ })).toBeVisible()
  await expect(page.getByRole('meter')).toBeVisible()
  await expect(page.getByRole('button', { name: /user, turn 1, .* in the window/ })).toBeVisible()
})

test('tables, code and formulas are shown', async ({ page }) => {
  await page.goto('chat/triage')
  await say(page, 'Show me a table')
  await expect(page.getByRole('cell', { name: 'Portugal' })).toBeVisible()
  await expect(page.locator('.katex-display')).toBeVisible()
  await say(page, 'and some code')
  await expect(page.locator('.hljs-keyword').first()).toBeVisible()
  await expect(page.getByRole('button', { name: 'Copy code' })).toBeVisible()
  await checkAccess(page)
})

test('raw HTML of an answer is text', async ({ page }) => {
  await page.goto('chat/triage')
  await page.route('**/flows/triage/stream', (route) =>
    route.fulfill({
      headers: { 'content-type': 'text/event-stream', 'x-vercel-ai-ui-message-stream': 'v1' },
      body: [{ type: 'start' }, { type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: '<img src=x onerror="window.hacked=1"> [a](javascript:alert(1)) ![b](https://example.com/b.png)' }, { type: 'text-end', id: '1' }, { type: 'finish' }].map((c) => `data: ${JSON.stringify(c)}\n\n`).join('') + 'data: [DONE]\n\n',
    }),
  )
  await say(page, 'hello')
  const answer = page.getByRole('article', { name: 'Assistant' })
  await expect(answer).toContainText('onerror')
  expect(await answer.locator('img').count()).toBe(0)
  expect(await answer.locator('a[href^="javascript"]').count()).toBe(0)
  expect(await page.evaluate(() => 'hacked' in window)).toBe(false)
})

for (const [name, button, text] of [
  ['approved', 'Approve', /refund of €39.90 is on its way/],
  ['denied', 'Deny', /have not paid the refund/],
] as const) {
  test(`a tool call is ${name}`, async ({ page }) => {
    await page.goto('chat/triage')
    await submit(page, 'I want a refund')
    await expect(page.getByText('waiting for you')).toBeVisible()
    await expect(page.getByText('39.9', { exact: true })).toBeVisible()
    await checkAccess(page)
    await page.getByRole('button', { name: button }).click()
    await answered(page)
    await expect(page.getByRole('article', { name: 'Assistant' })).toContainText(text)
    await expect(page.getByRole('button', { name: /refund\(/ })).toContainText(name === 'approved' ? 'done' : 'denied')
  })
}

test('an answer can be stopped and sent again', async ({ page }) => {
  await page.goto('chat/triage')
  await submit(page, 'a long answer')
  await expect(page.getByText('Sentence 1 of').first()).toBeVisible()
  await page.getByRole('button', { name: 'Stop' }).click()
  await answered(page)
  await page.getByRole('button', { name: 'Retry' }).click()
  await expect(page.getByRole('button', { name: 'Stop' })).toBeVisible()
  await page.keyboard.press('Escape')
  await answered(page)
  await expect(page.getByRole('article', { name: 'You' })).toHaveCount(1)
})

test('the last message is edited with the arrow key', async ({ page }) => {
  await page.goto('chat/triage')
  await say(page, 'hello')
  await page.getByLabel('Message', { exact: true }).focus()
  await page.keyboard.press('ArrowUp')
  await page.getByLabel('Edit the message').fill('Show me a table')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('cell', { name: 'Japan' })).toBeVisible()
  await answered(page)
  await expect(page.getByRole('article', { name: 'You' })).toHaveCount(1)
  await expect(page.getByRole('button', { name: /turn 1, .* replaced/ }).first()).toBeVisible()
})

test('a reload in the middle of an answer continues it', async ({ page }) => {
  await page.goto('chat/triage')
  await submit(page, 'a long answer')
  await expect(page.getByText('Sentence 3 of').first()).toBeVisible()
  await page.reload()
  await expect(page.getByRole('article', { name: 'You' })).toHaveText(/a long answer/)
  await expect(page.getByText('Sentence 1 of').first()).toBeVisible()
  await expect(page.getByRole('article', { name: 'Assistant' })).toHaveCount(1)
  await expect(page.getByText('Sentence 20 of').first()).toBeVisible({ timeout: 20_000 })
  await answered(page)
})

test('an error is explained and can be retried', async ({ page }) => {
  await page.goto('chat/triage')
  await submit(page, 'please fail')
  const alert = page.getByRole('alert')
  await expect(alert).toContainText('the model answered 500 three times')
  await checkAccess(page)
  const again = page.waitForRequest('**/flows/triage/stream')
  await alert.getByRole('button', { name: 'Retry' }).click()
  expect((await again).postDataJSON().messages).toHaveLength(1)
  await expect(alert).toBeVisible()
  await say(page, 'hello')
  await expect(shown(page, 'I have noted that')).toBeVisible()
})

test('conversations are switched, searched, renamed, forked, exported and deleted', async ({ page }) => {
  await page.goto('chat/triage/c-014')
  await expect(shown(page, 'It is in transit and due on')).toBeVisible()
  await page.getByRole('link', { name: /Damaged book/ }).click()
  await expect(shown(page, 'We will send a new copy')).toBeVisible()
  await expect(shown(page, 'It is in transit and due on')).toHaveCount(0)
  await page.goBack()
  await expect(shown(page, 'It is in transit and due on')).toBeVisible()

  await page.getByPlaceholder('Search conversations').fill('refund')
  await expect(page.getByRole('link', { name: /Damaged book/ })).toHaveCount(0)
  await page.getByPlaceholder('Search conversations').fill('')

  await page.getByRole('button', { name: 'Actions for Damaged book' }).click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await page.getByLabel('Title').fill('Torn cover')
  await page.getByRole('button', { name: 'Rename' }).click()
  await expect(page.getByRole('link', { name: /Torn cover/ })).toBeVisible()

  await page.getByRole('button', { name: 'Actions for Torn cover' }).click()
  const download = page.waitForEvent('download')
  await page.getByRole('menuitem', { name: 'Export' }).click()
  expect((await download).suggestedFilename()).toBe('c-002.jsonl')

  const made = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Make a test of this' }).last().click()
  expect((await made).suggestedFilename()).toMatch(/^c-014-\d+\.qtype-test\.yaml$/)

  await page.getByRole('button', { name: 'Fork from here' }).last().click()
  await expect(page).toHaveURL(/c-014-fork/)

  await page.getByRole('button', { name: 'Actions for Torn cover' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await expect(page.getByRole('link', { name: /Torn cover/ })).toHaveCount(0)
  await page.getByRole('button', { name: 'New conversation' }).click()
  await expect(page).toHaveURL(/chat\/triage$/)
  await expect(page.getByLabel('Message', { exact: true })).toBeFocused()
})

test('the context explains why a message is no longer seen', async ({ page }) => {
  await page.goto('chat/triage/c-014')
  await expect(page.getByText('of 35,000 tokens', { exact: true })).toBeVisible()
  await page.getByRole('button', { name: /no longer sees the messages above/ }).click()
  await expect(page.getByText('The model no longer sees this message')).toBeVisible()
  const panel = page.getByRole('complementary', { name: 'Context' })
  await expect(panel.getByText(/Over the chat share of 35,000 tokens/).first()).toBeVisible()
  await panel.getByRole('button', { name: /user, turn 1, .* in the summary/ }).click()
  await expect(panel.getByText('The model sees only a summary of this message')).toBeVisible()
  await panel.getByRole('button', { name: /System message/ }).click()
  await expect(panel.getByText('Be kind, brief and concrete.').last()).toBeVisible()
  await checkAccess(page)
})

test('files are attached by paste and sent as data', async ({ page }) => {
  await page.goto('chat/triage')
  await page.getByLabel('Message', { exact: true }).focus()
  await page.evaluate(() => {
    const data = new DataTransfer()
    data.items.add(new File(['hello'], 'note.txt', { type: 'text/plain' }))
    document.activeElement!.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
  })
  await expect(page.getByText('note.txt')).toBeVisible()
  const request = page.waitForRequest('**/flows/triage/stream')
  await submit(page, 'see the note')
  const { messages } = (await request).postDataJSON()
  expect(messages.at(-1).parts).toEqual([
    { type: 'file', mediaType: 'text/plain', filename: 'note.txt', url: 'data:text/plain;base64,aGVsbG8=' },
    { type: 'text', text: 'see the note' },
  ])
  await answered(page)
})

test('feedback is sent with the ids of the answer', async ({ page }) => {
  await page.goto('chat/triage')
  await say(page, 'hello')
  await page.getByRole('button', { name: 'Good answer' }).click()
  await expect(page.getByText('Thank you.')).toBeVisible()
  const { feedback } = await (await configure(page, {})).json()
  expect(feedback).toMatchObject([{ span_id: '7d1f0c55a0b94e21', trace_id: '0f6c1d1f9a3e4c0b8d2e7a5c4b3a2910', run: 'run-1', feedback: { type: 'thumbs', value: true } }])
})

test('a long conversation shows its newest messages, and earlier ones on request', async ({ page }) => {
  const stored = Array.from({ length: 600 }, (_, i) => {
    const turn = Math.floor(i / 2) + 1
    const [role, text] = i % 2 ? ['assistant', `Answer ${turn}.`] : ['user', `Question ${turn}?`]
    return { id: `m${i + 1}`, seq: i + 1, turn, role, parts: [{ type: 'text', text }], tokens: 5, status: turn > 290 ? 'in_window' : 'evicted' }
  })
  const requests: string[] = []
  await page.route(/\/sessions\/c-long\/messages/, (route) => {
    const query = new URL(route.request().url()).searchParams
    requests.push(query.toString())
    const end = query.has('before') ? stored.findIndex((m) => m.seq === Number(query.get('before'))) : stored.length
    const messages = stored.slice(Math.max(0, end - Number(query.get('limit'))), end)
    return route.fulfill({ json: { messages, previous: messages[0].seq > 1 ? messages[0].seq : null } })
  })
  const feedback = [{ memory: 'chat_memory', turn: 300, run: 'run-9', type: 'thumbs', value: false, verdict: 'down', explanation: 'too short' }]
  await page.route(/\/sessions\/c-long$/, (route) =>
    route.fulfill({ json: { id: 'c-long', title: 'Long', flow: 'triage', run: null, feedback, memories: [{ id: 'chat_memory', policy: 'message_window', messages: 600, in_window: 20 }] } }))
  await page.goto('chat/triage/c-long')
  const questions = page.getByRole('article', { name: 'You' })
  await expect(page.getByText('Answer 300.')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Bad answer' }).last()).toHaveAttribute('aria-pressed', 'true')
  await expect(page.getByText('too short')).toBeVisible()
  await expect(questions).toHaveCount(19)
  expect(requests.every((r) => r.includes('limit=40'))).toBe(true)
  await page.getByRole('button', { name: 'Earlier messages' }).click()
  await expect(questions).toHaveCount(119)
  await expect(page.getByText('Question 282?')).toBeInViewport() // the place in the conversation stays
  expect(await questions.allTextContents()).toEqual(Array.from({ length: 119 }, (_, i) => expect.stringContaining(`Question ${182 + i}?`)))
  await page.getByRole('button', { name: 'Earlier messages' }).click()
  await page.getByRole('button', { name: 'Earlier messages' }).click()
  await expect(questions).toHaveCount(300)
  await expect(page.getByRole('button', { name: 'Earlier messages' })).toHaveCount(0)
})
