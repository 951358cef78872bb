import { execFile } from 'node:child_process'
import { request } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { cp } from 'node:fs/promises'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import { expect, it, onTestFinished } from 'vitest'
import { installPackage } from '../package/installed.ts'
import { serve } from '../support/serve.ts'
import { EXPECTED, startService } from './service.ts'

const PROGRAMS = resolve(import.meta.dirname, 'programs')
const BROWSER = resolve(import.meta.dirname, 'runtimes/browser.js')

/** Bundles the page against the installed package, as an application's bundler does. */
async function bundlePage(): Promise<string> {
  const installed = await installPackage()
  onTestFinished(() => installed[Symbol.asyncDispose]())
  await cp(PROGRAMS, installed.folder, { recursive: true })
  const bundle = await rolldown({ input: 'page.js', cwd: installed.folder, platform: 'browser' })
  const { output } = await bundle.generate({ codeSplitting: false })
  await bundle.close()
  return output[0].code
}

/** Passes a request on to the service with the key that the page does not have. */
function passOn(incoming: IncomingMessage, outgoing: ServerResponse, target: string, apiKey: string): void {
  const headers = { ...incoming.headers, 'x-api-key': apiKey, host: new URL(target).host }
  const onward = request(target, { method: incoming.method, headers }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(outgoing)
    // A stream that is cut behind the proxy is cut before it.
    response.on('close', () => {
      if (!response.complete) outgoing.destroy()
    })
  })
  onward.on('error', () => outgoing.destroy())
  outgoing.on('close', () => onward.destroy())
  incoming.pipe(onward)
}

it('runs in Chromium, where a page reads through a proxy of its own origin, without a key', async () => {
  const { service, baseUrl } = await startService()
  const code = await bundlePage()
  const url = await serve((incoming, outgoing) => {
    const path = incoming.url ?? '/'
    if (path.startsWith('/research/')) {
      passOn(incoming, outgoing, baseUrl + path.slice('/research'.length), service.apiKey)
    } else if (path === '/') {
      // Without it, Chromium guesses the encoding from the text.
      outgoing.setHeader('content-type', 'text/html; charset=utf-8')
      outgoing.end(`<!doctype html><title>rivulet</title><script type="module">${code}</script>`)
    } else {
      outgoing.writeHead(404).end()
    }
  })

  const { stdout } = await promisify(execFile)(process.execPath, [BROWSER, url])

  expect(JSON.parse(stdout)).toEqual(EXPECTED)
  expect(service.faults.struck).toEqual({ cut: 1 })
})
