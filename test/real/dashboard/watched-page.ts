import type { Context, Page } from '../browser.ts'
import { withAxe } from './axe.ts'

/** A page, and what must not happen in it. */
export interface WatchedPage {
  readonly page: Page
  /** Errors and warnings of the console, such as those of the policy; uncaught errors; and requests to other origins. */
  readonly problems: string[]
}

/** Opens a page that may load from `base` alone. `expected` matches messages that a test provokes. */
export async function watchedPage(
  context: Context,
  base: string,
  expected: RegExp = /^$/,
): Promise<WatchedPage> {
  const page = await context.newPage()
  const problems: string[] = []
  const add = (problem: string) => {
    if (!expected.test(problem)) problems.push(problem)
  }
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') add(message.text())
  })
  page.on('pageerror', (error) => add(String(error)))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${base}/`)) add(`a request to ${request.url()}`)
  })
  await withAxe(page)
  return { page, problems }
}
