import AxeBuilder from '@axe-core/playwright'
import { test as base, expect, type Page } from '@playwright/test'

/** A test whose page must not write errors, warnings or violations of the policy to the console. */
export const test = base.extend<{ messages: string[] }>({
  messages: [
    async ({ page }, use) => {
      const messages: string[] = []
      page.on('console', (m) => {
        // The browser reports answers with an error status itself.
        if ((m.type() === 'error' || m.type() === 'warning') && !/Failed to load resource/.test(m.text())) messages.push(m.text())
      })
      page.on('pageerror', (e) => messages.push(e.message))
      await use(messages)
      expect(messages).toEqual([])
    },
    { auto: true },
  ],
})
export { expect }

/** Changes the server with canned answers. */
export const configure = (page: Page, change: unknown) => page.request.put('mock', { data: change })

/** Sends a message and waits until its answer is complete. */
export async function say(page: Page, text: string) {
  await submit(page, text)
  await answered(page)
}

export async function submit(page: Page, text: string) {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

/** A text in the messages of the conversation. */
export const shown = (page: Page, text: string | RegExp) => page.getByRole('region', { name: 'Messages' }).getByText(text)

export const answered = (page: Page) => expect(page.getByRole('button', { name: 'Send', exact: true })).toBeVisible({ timeout: 20_000 })

/** Fails if axe has a serious or critical violation on the page. */
export async function checkAccess(page: Page) {
  const { violations } = await new AxeBuilder({ page }).analyze()
  const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical')
  expect(serious.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).join('; ')}`)).toEqual([])
}
