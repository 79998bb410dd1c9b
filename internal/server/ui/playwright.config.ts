import { defineConfig } from '@playwright/test'

// A running server to test in place of the one with canned answers.
const address = process.env.QTYPE_UI_URL

export default defineConfig({
  testDir: 'test/e2e',
  testMatch: address ? /(server|common)\.spec\.ts/ : /\.spec\.ts/,
  testIgnore: address ? [] : /server\.spec\.ts/,
  outputDir: process.env.QTYPE_UI_RESULTS ?? '/tmp/qtype-ui-results',
  workers: 1,
  retries: 2, // browsers are slow on busy machines
  timeout: 30_000,
  expect: { timeout: 8_000 },
  reporter: 'list',
  use: {
    baseURL: (address ?? 'http://127.0.0.1:8766').replace(/\/?$/, '/'),
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      executablePath: process.env.QTYPE_CHROMIUM ?? '/usr/bin/chromium',
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'],
    },
  },
  webServer: address ? undefined : { command: 'node test/mock/server.mjs 8766', url: 'http://127.0.0.1:8766/app', reuseExistingServer: false },
})
