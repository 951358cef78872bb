import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Page } from '../browser.ts'

const ARTIFACTS = resolve(import.meta.dirname, '../../../artifacts/dashboard')

/** Whether the variable SCREENSHOTS asks for pictures. No test looks at them, and they take as long as many of its checks. */
const isWanted = process.env['SCREENSHOTS'] !== undefined

/** Writes a picture of the page into `artifacts/dashboard`, if SCREENSHOTS is set. */
export async function screenshot(page: Page, name: string, { fullPage = false } = {}): Promise<void> {
  if (!isWanted) return
  await mkdir(ARTIFACTS, { recursive: true })
  await page.screenshot({ path: join(ARTIFACTS, `${name}.png`), fullPage })
}
