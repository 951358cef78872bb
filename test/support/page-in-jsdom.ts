import { JSDOM } from 'jsdom'
import { onTestFinished } from 'vitest'

/** Opens a page in a browser without a screen, until the test ends. Its only script is a module that imports nothing. */
export async function openPageInJsdom(url: string): Promise<Document> {
  const { window } = new JSDOM(await (await fetch(url)).text(), { url, runScripts: 'outside-only' })
  // What jsdom does not have, or not as Node's `fetch` takes it.
  Object.assign(window, {
    fetch: (path: string, { signal, ...init }: RequestInit = {}) => {
      const controller = new AbortController()
      signal?.addEventListener('abort', () => controller.abort(signal.reason))
      return fetch(new URL(path, url), { ...init, signal: controller.signal })
    },
    ReadableStream,
    TextDecoder,
    TextEncoder,
  })
  onTestFinished(() => window.close())
  const script = window.document.querySelector('script')?.getAttribute('src')
  // jsdom runs no modules.
  window.eval(await (await fetch(new URL(script ?? '', url))).text())
  return window.document
}
