import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { installPackage } from '../package/installed.ts'
import type { InstalledPackage } from '../package/installed.ts'
import { sign } from '../support/sign.ts'
import { EXPECTED, startService } from './service.ts'

const SECRET = 'the account secret'
const binary = (name: string) => resolve(import.meta.dirname, 'runtimes/node_modules/.bin', name)

let installed: InstalledPackage
beforeAll(async () => {
  installed = await installPackage()
  await cp(join(import.meta.dirname, 'programs'), installed.folder, { recursive: true })
  await bundleWorker(installed.folder)
})
afterAll(() => installed[Symbol.asyncDispose]())

/** Bundles the worker as its users do: for the conditions of the runtime. */
async function bundleWorker(folder: string): Promise<void> {
  const bundle = await rolldown({
    input: 'worker.js',
    cwd: folder,
    platform: 'browser',
    resolve: { conditionNames: ['workerd', 'worker', 'browser'] },
  })
  await bundle.write({ file: join(folder, 'worker.bundle.js'), codeSplitting: false })
  await bundle.close()
}

interface Runtime {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

const RUNTIMES: readonly Runtime[] = [
  { name: 'Bun', command: 'bun', args: ['--no-install', 'run', 'bun.js'] },
  {
    name: 'Deno',
    command: 'deno',
    args: [
      'run',
      '--cached-only',
      '--node-modules-dir=manual',
      '--allow-net=127.0.0.1',
      '--allow-env',
      'deno.js',
    ],
  },
  { name: 'workerd', command: 'workerd', args: ['serve', '--control-fd=3', 'worker.capnp'] },
]

/** Starts the app on a runtime. Resolves to its address once it listens; what it says on its way is in errors. */
async function start(
  { command, args }: Runtime,
  settings: Readonly<Record<string, string>>,
): Promise<string> {
  const child = spawn(binary(command), args, {
    cwd: installed.folder,
    env: { ...process.env, ...settings, SECRET },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text))
  const port = Promise.withResolvers<number>()
  const ended = once(child, 'close').then(
    () => port.reject(new Error(`${command} ended: ${said}`)),
    (cause: unknown) => port.reject(new Error('run: npm ci --prefix test/real/runtimes', { cause })),
  )
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const [, stdout, , control] = child.stdio
  for (const stream of [stdout, control]) {
    createInterface({ input: stream as Readable }).on('line', (line) => {
      const { port: given }: { readonly port?: number } = JSON.parse(line)
      if (given !== undefined) port.resolve(given)
    })
  }
  return `http://127.0.0.1:${await port.promise}`
}

async function json(url: string): Promise<unknown> {
  const response = await fetch(url)
  const text = await response.text()
  return response.ok ? JSON.parse(text) : text
}

describe.each(RUNTIMES)('the package on $name', (runtime) => {
  it('searches, resumes a stream that is cut, executes and handles, with every operator on the way', async () => {
    const { service, baseUrl } = await startService()
    const url = await start(runtime, { BASE_URL: baseUrl, API_KEY: service.apiKey })

    expect(await json(`${url}/pipeline`)).toEqual(EXPECTED)
    expect(service.faults.struck).toEqual({ cut: 1 })
  })

  it('receives what is signed, once, and refuses what is not', async () => {
    const url = await start(runtime, { BASE_URL: 'http://127.0.0.1:1', API_KEY: 'none' })
    const body = JSON.stringify({ type: 'task_run.status', data: { note: 'na\u00efve ✓' } })
    const post = async (headers: Readonly<Record<string, string>>, sent = body) =>
      (await fetch(`${url}/webhooks`, { method: 'POST', headers, body: sent })).status
    const good = sign({ body, secrets: ['other', SECRET], id: 'a' })

    const statuses = {
      good: await post(good),
      again: await post(good),
      forged: await post(sign({ body, secrets: 'forged', id: 'b' })),
      changed: await post(sign({ body, secrets: SECRET, id: 'c' }), `${body} `),
      stale: await post(sign({ body, secrets: SECRET, id: 'd', timestamp: 1 })),
      large: await post(sign({ body, secrets: SECRET, id: 'e' }), 'x'.repeat(2_000)),
    }

    expect(statuses).toEqual({ good: 204, again: 204, forged: 401, changed: 401, stale: 403, large: 413 })
    await expect.poll(() => json(`${url}/received`)).toEqual(['a'])
  })
})
