// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
// Opens a page in the Chromium of Debian, and prints what it reports.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const [, , url] = process.argv
const profile = await mkdtemp(join(tmpdir(), 'rivulet-chromium-'))
const context = await chromium.launchPersistentContext(profile, {
  executablePath: '/usr/bin/chromium',
  headless: true,
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
})
try {
  const page = await context.newPage()
  await page.goto(url)
  // An error of the page is a report too.
  const report = await page.evaluate('report.catch((error) => String(error))')
  process.stdout.write(JSON.stringify(report))
} finally {
  await context.close()
  await rm(profile, { recursive: true, force: true })
}
