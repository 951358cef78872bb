/** `npm run pictures`: pictures of the dashboard of the demonstration, light and dark, in `docs/images`. It needs Debian's Chromium, and `npm ci --prefix test/real/runtimes`. */
import { spawn } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { startChromium } from '../test/real/browser.ts'

const ROOT = resolve(import.meta.dirname, '..')
const IMAGES = join(ROOT, 'docs/images')
/** Maximum size of a picture, in bytes. */
const MAX_BYTES = 150_000

const demonstration = spawn(
  process.execPath,
  ['--conditions=rivulet-source', 'src/cli/main.ts', 'start', '--dashboard', '--docs', 'docs/reference'],
  { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] },
)
try {
  const address = await addressOfDashboard()
  await using chromium = await startChromium({ viewport: { width: 1200, height: 760 } })
  const page = await chromium.context.newPage()
  mkdirSync(IMAGES, { recursive: true })
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.goto(address)
    await page.getByText('live', { exact: true }).first().waitFor()
    await page.locator('main h1, main h2').first().waitFor()
    const path = join(IMAGES, `dashboard-${colorScheme}.png`)
    await page.screenshot({ path })
    if (statSync(path).size > MAX_BYTES) throw new Error(`${path} is larger than ${MAX_BYTES} bytes`)
  }
} finally {
  demonstration.kill('SIGINT')
}

/** The address of the dashboard, once the demonstration has ended. */
async function addressOfDashboard(): Promise<string> {
  let address: string | undefined
  for await (const line of createInterface(demonstration.stdout)) {
    address = /http:\/\/127\.0\.0\.1:\d+\/\?key=\S+/.exec(line)?.[0] ?? address
    if (address !== undefined && line.includes('Next steps')) return address
  }
  throw new Error('the demonstration ended without a dashboard')
}
