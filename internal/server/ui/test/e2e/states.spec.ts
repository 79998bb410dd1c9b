import { checkAccess, configure, expect, shown, test } from './base'

test.beforeEach(({ page }) => configure(page, { reset: true, pace: 8 }))

test('the start page has the flows and examples', async ({ page }) => {
  await page.goto('')
  await expect(page.getByRole('heading', { name: 'Support inbox' })).toBeVisible()
  await expect(page.getByText('Answers are simulated by a mock')).toBeVisible()
  await checkAccess(page)
  await page.getByRole('button', { name: /Show me a table/ }).click()
  await expect(page.getByLabel('Message', { exact: true })).toHaveValue('Show me a table of delivery times.')
})

test('a key is requested and sent', async ({ page }) => {
  await configure(page, { key: 'secret' })
  await page.goto('chat/triage/c-014')
  await expect(page.getByRole('heading', { name: 'This application needs a key' })).toBeVisible()
  await checkAccess(page)
  await page.getByLabel('API key').fill('wrong')
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(page.getByText('does not accept the key')).toBeVisible()
  await page.getByLabel('API key').fill('secret')
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(shown(page, 'It is in transit and due on')).toBeVisible()
  expect(await page.evaluate(() => [sessionStorage.getItem('qtype.key'), localStorage.getItem('qtype.key')])).toEqual(['secret', null])
})

test('a refused reload is shown with its diagnostic', async ({ page }) => {
  const excerpt = 'error[QT202] app.qtype.yaml:24:17: no memory has the id "chat_memry"\n   |\n24 |         memory: chat_memry\n   |                 ^^^^^^^^^^ did you mean "chat_memory"?'
  await configure(page, { app: { reload_error: { message: 'app.qtype.yaml has 1 error; still serving the version of 04:10:31.', diagnostics: [{ message: 'x', excerpt }] } } })
  await page.goto('')
  await expect(page.getByText('Reload refused.')).toBeVisible()
  await page.getByRole('button', { name: 'Show diagnostics' }).click()
  await expect(page.getByText('did you mean "chat_memory"?')).toBeVisible()
  await checkAccess(page)
})

test('a lost connection is shown', async ({ page, context, messages }) => {
  await page.goto('chat/triage/c-014')
  await expect(shown(page, 'It is in transit')).toBeVisible()
  await context.setOffline(true)
  await expect(page.getByText('You are offline.')).toBeVisible()
  await page.getByLabel('Message', { exact: true }).fill('hello')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('alert')).toContainText('The server cannot be reached')
  await context.setOffline(false)
  await page.getByRole('alert').getByRole('button', { name: 'Retry' }).click()
  await expect(shown(page, 'I have noted that')).toBeVisible()
  await expect(page.getByText('You are offline.')).toHaveCount(0)
  messages.length = 0
})

test('a server that is down is shown with a retry', async ({ page }) => {
  await page.route('**/app', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify({ status: 503, title: 'Service Unavailable', detail: 'the server is shutting down' }) }))
  await page.goto('')
  await expect(page.getByRole('alert')).toContainText('the server is shutting down', { timeout: 15_000 })
  await page.unroute('**/app')
  await page.getByRole('button', { name: 'Retry' }).click()
  await expect(page.getByRole('heading', { name: 'Support inbox' })).toBeVisible()
})

test('the commands are used by keyboard', async ({ page }) => {
  await page.goto('')
  await expect(page.getByRole('heading', { name: 'Support inbox' })).toBeVisible()
  await page.keyboard.press('Control+k')
  await expect(page.getByPlaceholder('Search commands and conversations')).toBeFocused()
  await checkAccess(page)
  await page.keyboard.type('dark')
  await page.keyboard.press('Enter')
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
  await page.reload()
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
  await expect(page.getByRole('heading', { name: 'Support inbox' })).toBeVisible()
  await checkAccess(page)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('damaged')
  await expect(page.getByRole('option', { name: 'Damaged book' })).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(shown(page, 'We will send a new copy')).toBeVisible()
})

test('pages fit a phone', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  for (const path of ['', 'chat/triage/c-014', 'form/order', 'form/classify', 'batch/classify', 'graph/triage', 'history/triage']) {
    await page.goto(path)
    await expect(page.locator('main')).toBeVisible()
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(390)
    await checkAccess(page)
  }
  await page.goto('chat/triage/c-014')
  await page.getByRole('button', { name: 'Menu' }).click()
  await page.getByRole('dialog').getByRole('link', { name: /Damaged book/ }).click()
  await expect(shown(page, 'We will send a new copy')).toBeVisible()
  await page.getByRole('button', { name: 'Context', exact: true }).click()
  await expect(page.getByRole('dialog').getByRole('meter')).toBeVisible()
})

test('dark pages have enough contrast', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'dark' })
  for (const path of ['', 'chat/triage/c-014', 'form/order', 'batch/classify', 'graph/triage']) {
    await page.goto(path)
    await expect(page.locator('main')).toBeVisible()
    await page.waitForLoadState('networkidle')
    await checkAccess(page)
  }
})

test('unknown addresses are explained', async ({ page }) => {
  await page.goto('form/none')
  await expect(page.getByText('The application has no flow "none".')).toBeVisible()
})

test('calls that wait for a role of the user are listed and decided', async ({ page }) => {
  let waiting = [{ run: 'run_1', flow: 'triage', caller: 'user:eve', created: '2026-11-28T20:00:00Z', request: { id: 'r1', kind: 'approval', tool: 'refund', arguments: { order: 7 }, by: ['role:desk'] } }]
  let decided = ''
  await page.route('**/approvals', (r) => r.fulfill({ json: { approvals: waiting } }))
  await page.route('**/approvals/run_1', (r) => {
    decided = r.request().postData() ?? ''
    waiting = []
    return r.fulfill({ json: {} })
  })
  await configure(page, { app: { authentication: 'oidc', principal: 'user:bob' } })
  await page.goto('')
  await page.getByRole('button', { name: '1 call waits for your decision' }).click()
  await expect(page.getByText('user:eve · triage')).toBeVisible()
  await checkAccess(page)
  await page.getByRole('button', { name: 'Approve' }).click()
  await expect(page.getByText('No call waits for your decision.')).toBeVisible()
  expect(JSON.parse(decided)).toEqual({ id: 'r1', approved: true })
})
