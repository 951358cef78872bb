import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { createClient } from 'rivulet'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { MANIFEST, ROOT } from '../package/build.ts'
import type { InstalledPackage } from '../package/build.ts'
import { installPackage } from '../package/installed.ts'
import { sign } from '../support/sign.ts'
import { EXPECTED, startService } from './service.ts'
import type { ViewRequest } from '../../src/protocol/live.ts'

const SECRET = 'the account secret, of more than 32 bytes'
const binary = (name: string) => resolve(import.meta.dirname, 'runtimes/node_modules/.bin', name)

let installed: InstalledPackage
beforeAll(async () => {
  installed = await installPackage()
  await cp(join(import.meta.dirname, 'programs'), installed.folder, { recursive: true })
  const [, program = ''] =
    /^```js\n\/\/ worker\.js\n([^]*?)^```$/m.exec(
      await readFile(join(ROOT, 'docs/guides/live-frameworks.md'), 'utf8'),
    ) ?? []
  await writeFile(join(installed.folder, 'durable-object.js'), program)
  for (const name of ['worker', 'shared-gateway', 'durable-object'])
    await bundleWorker(installed.folder, name)
})
afterAll(() => installed[Symbol.asyncDispose]())

/** Bundles a worker as its users do: for the conditions of the runtime. */
async function bundleWorker(folder: string, name: string): Promise<void> {
  const bundle = await rolldown({
    input: `${name}.js`,
    cwd: folder,
    platform: 'browser',
    resolve: { conditionNames: ['workerd', 'worker', 'browser'] },
  })
  await bundle.write({ file: join(folder, `${name}.bundle.js`), codeSplitting: false })
  await bundle.close()
}

interface Runtime {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

/** The oldest Node of `engines`, whose SQLite has the WAL-reset bug. */
const OLDEST_NODE: Runtime = { name: 'the oldest Node', command: 'node', args: ['node.js'] }

const RUNTIMES: readonly Runtime[] = [
  OLDEST_NODE,
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
  workerd('worker'),
]

function workerd(name: string): Runtime {
  return { name: 'workerd', command: 'workerd', args: ['serve', '--control-fd=3', `${name}.capnp`] }
}

/** Starts the app on a runtime. Resolves to its address once it listens; what it says on its way is in errors. */
async function start(
  { command, args }: Runtime,
  settings: Readonly<Record<string, string>>,
): Promise<string> {
  const child = spawn(binary(command), args, {
    cwd: installed.folder,
    env: { ...process.env, ...settings, RIVULET_WEBHOOK_SECRET: SECRET, RIVULET_TOKEN_SECRET: SECRET },
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
    const url = await start(runtime, { RIVULET_BASE_URL: baseUrl, RIVULET_API_KEY: service.apiKey })

    expect(await json(`${url}/pipeline`)).toEqual(EXPECTED)
    expect(service.faults.struck).toEqual({ cut: 1 })
  })

  it('receives what is signed, once, and refuses what is not', async () => {
    const url = await start(runtime, { RIVULET_BASE_URL: 'http://127.0.0.1:1', RIVULET_API_KEY: 'none' })
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

it('the oldest Node of engines opens no SQLite database, and says which Node does', async () => {
  const url = await start(OLDEST_NODE, { RIVULET_BASE_URL: 'http://127.0.0.1:1', RIVULET_API_KEY: 'none' })
  const refusal =
    /Error: \S+ is not opened with this Node, whose SQLite 3\.50\.4 can lose .* use Node 22\.22\.3 or later of 22, or 24\.15/

  expect(MANIFEST.engines.node).toBe('>=22.19.0')
  expect(await json(`${url}/refusals`)).toEqual([
    expect.stringMatching(refusal),
    expect.stringMatching(refusal),
  ])
})

describe('a gateway in workerd', () => {
  it('follows the log between requests in a Durable Object, with the program of docs/guides/live-frameworks.md', async () => {
    const released = Promise.withResolvers<void>()
    const { service, baseUrl } = await startService(released.promise)
    const client = createClient({ baseUrl, apiKey: service.apiKey })
    const { taskgroup_id: group } = await client.taskGroups.create()
    await client.taskGroups.addRuns(group, { inputs: [{ input: 'rivers', processor: 'base' }] })
    const settings = { RIVULET_BASE_URL: baseUrl, RIVULET_API_KEY: service.apiKey, GROUP: group }
    const url = await start(workerd('durable-object'), settings)

    // The request that has started all is over by then.
    const token = await (await fetch(`${url}/token`, { method: 'POST' })).text()
    const frames = await follow(url, token, { view: 'group', params: { group } })
    await frames.until('event: current')
    released.resolve()

    await frames.until('about rivers')
    expect(await json(`${url}/live/stream`)).toContain('unauthenticated')
  })

  it('rejects in another request than the one that has created it, instead of waiting for ever', async () => {
    const url = await start(workerd('shared-gateway'), {})
    const token = await (await fetch(`${url}/token`)).text()
    const texts = await Promise.all(
      ['/token', '/live/stream', '/own'].map(async (path) => (await fetch(url + path)).text()),
    )

    expect(token).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    expect(texts).toEqual([
      expect.stringMatching(/^LogUnsupportedError: a gateway in a Worker .* create it in a Durable Object/),
      expect.stringMatching(/^LogUnsupportedError: a gateway in a Worker/),
      expect.stringMatching(/^LogUnsupportedError: a log in a Worker/),
    ])
  })
})

/** Follows a view of a gateway, until the test ends. */
async function follow(url: string, token: string, view: ViewRequest) {
  const page = new AbortController()
  onTestFinished(() => page.abort())
  const response = await fetch(`${url}/live/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ views: [view] }),
    signal: page.signal,
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let read = ''
  return {
    /** Resolves once the text has come. */
    async until(text: string): Promise<void> {
      while (!read.includes(text)) {
        const chunk = await reader?.read()
        if (chunk?.value === undefined) throw new Error(`the stream has ended: ${read}`)
        read += chunk.value
      }
    },
  }
}
