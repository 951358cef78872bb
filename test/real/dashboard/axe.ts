import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from '../browser.ts'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** Loads axe into each document of a page, before its own scripts and in spite of its policy. */
export async function withAxe(page: Page): Promise<void> {
  await page.addInitScript({ content: await readFile(AXE, 'utf8') })
}

/** What axe finds in the page as it is, a line for each element. */
export function findings(page: Page): Promise<string[]> {
  return page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ': ' + target.join(' ') + ': ' + failureSummary)))`)
}
