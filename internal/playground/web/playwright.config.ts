import { defineConfig } from '@playwright/test'

// QTYPE_PLAYGROUND is the folder that make playground wrote.
export default defineConfig({
  testDir: 'test',
  testMatch: /\.spec\.ts/,
  outputDir: process.env.QTYPE_PLAYGROUND_RESULTS ?? '/tmp/qtype-playground-results',
  workers: 1,
  retries: 1, // browsers are slow on busy machines
  timeout: 60_000,
  expect: { timeout: 20_000 },
  reporter: 'list',
  use: {
    baseURL: 'http://127.0.0.1:8767/',
    viewport: { width: 1440, height: 1000 },
    launchOptions: {
      executablePath: process.env.QTYPE_CHROMIUM ?? '/usr/bin/chromium',
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'],
    },
  },
  webServer: { command: 'node test/server.mjs 8767', url: 'http://127.0.0.1:8767/', reuseExistingServer: false },
})
