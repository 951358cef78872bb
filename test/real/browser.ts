import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** What the tests use of playwright-core, which is no dependency of the package, so that its types may not be there. */
export interface Page {
  goto(url: string): Promise<unknown>
  reload(): Promise<unknown>
  goBack(): Promise<unknown>
  url(): string
  title(): Promise<string>
  evaluate<Result>(expression: string): Promise<Result>
  waitForFunction(
    expression: string,
    argument?: unknown,
    options?: { readonly timeout: number },
  ): Promise<unknown>
  addScriptTag(script: { readonly content: string }): Promise<unknown>
  addInitScript(script: { readonly content: string }): Promise<unknown>
  screenshot(options: { readonly path: string; readonly fullPage?: boolean }): Promise<unknown>
  setViewportSize(size: { readonly width: number; readonly height: number }): Promise<void>
  emulateMedia(media: {
    readonly colorScheme?: 'light' | 'dark'
    readonly reducedMotion?: 'reduce' | 'no-preference'
  }): Promise<void>
  locator(selector: string): Locator
  getByRole(
    role: string,
    options?: { readonly name?: string | RegExp; readonly exact?: boolean; readonly level?: number },
  ): Locator
  getByText(text: string | RegExp, options?: { readonly exact?: boolean }): Locator
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> }
  on(
    event: 'console',
    listener: (message: { type(): string; text(): string; location(): { readonly url: string } }) => void,
  ): void
  on(event: 'crash', listener: () => void): void
  on(event: 'pageerror', listener: (error: Error) => void): void
  on(event: 'request', listener: (request: { url(): string }) => void): void
  close(): Promise<void>
}

/** An element of a page, found anew at each use. */
interface Locator {
  click(options?: { readonly force?: boolean }): Promise<void>
  fill(text: string): Promise<void>
  focus(): Promise<void>
  hover(): Promise<void>
  count(): Promise<number>
  first(): Locator
  last(): Locator
  nth(index: number): Locator
  locator(selector: string): Locator
  getByRole(role: string, options?: { readonly name?: string | RegExp; readonly exact?: boolean }): Locator
  getByText(text: string | RegExp, options?: { readonly exact?: boolean }): Locator
  waitFor(options?: {
    readonly state?: 'visible' | 'hidden' | 'attached' | 'detached'
    readonly timeout?: number
  }): Promise<void>
  innerText(): Promise<string>
  textContent(): Promise<string | null>
  allInnerTexts(): Promise<string[]>
  getAttribute(name: string): Promise<string | null>
  isVisible(): Promise<boolean>
  evaluate<Result>(read: (element: never) => Result): Promise<Result>
}

/** A window of its own profile. */
export interface Context {
  newPage(): Promise<Page>
  /** The browser's own protocol, for one page. */
  newCDPSession(page: Page): Promise<{ send(method: string, params?: object): Promise<unknown> }>
  setOffline(isOffline: boolean): Promise<void>
  clearCookies(): Promise<void>
  close(): Promise<void>
}

interface Playwright {
  readonly chromium: {
    launchPersistentContext(profile: string, options: Readonly<Record<string, unknown>>): Promise<Context>
  }
}

/** Starts the Chromium of Debian with an empty profile. */
export async function startChromium(options: Readonly<Record<string, unknown>> = {}) {
  const load = createRequire(resolve(import.meta.dirname, 'runtimes/package.json'))
  const { chromium }: Playwright = load('playwright-core')
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
    ...options,
  })
  return {
    context,
    async [Symbol.asyncDispose]() {
      await context.close()
      await rm(profile, { recursive: true, force: true })
    },
  }
}
