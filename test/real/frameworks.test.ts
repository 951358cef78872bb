import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../package/build.ts'
import type { InstalledPackage } from '../package/build.ts'
import { installPackage } from '../package/installed.ts'
import { sign } from '../support/sign.ts'

const SECRET = 'the account secret, of more than 32 bytes'
const modules = resolve(import.meta.dirname, 'frameworks/node_modules')
const manifest: { readonly devDependencies: Readonly<Record<string, string>> } = JSON.parse(
  await readFile(resolve(modules, '../package.json'), 'utf8'),
)

/** The programs of docs/guides/live-frameworks.md, by the file that their first line names. */
const programs = new Map(
  [
    ...(await readFile(join(ROOT, 'docs/guides/live-frameworks.md'), 'utf8')).matchAll(
      /^```js\n\/\/ (?<file>[\w-]+\.js)\n(?<text>[^]*?)^```$/gm,
    ),
  ].map(({ groups }) => [groups?.['file'] ?? '', groups?.['text'] ?? '']),
)

let installed: InstalledPackage
beforeAll(async () => {
  installed = await installPackage()
  for (const name of Object.keys(manifest.devDependencies)) {
    const link = join(installed.folder, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    if (name !== 'rxjs') await symlink(join(modules, name), link, 'junction')
  }
  for (const [file, text] of programs) await writeFile(join(installed.folder, file), text)
})
afterAll(() => installed[Symbol.asyncDispose]())

/** Runs a program, and returns its address and what ends it. */
async function start(file: string): Promise<{ readonly url: string; readonly end: () => Promise<void> }> {
  const report = `
    const { server } = await import('./${file}')
    if (!server.listening) await new Promise((listening) => server.once('listening', listening))
    console.log('port ' + server.address().port)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', report], {
    cwd: installed.folder,
    env: { ...process.env, PORT: '0', RIVULET_TOKEN_SECRET: SECRET, RIVULET_WEBHOOK_SECRET: SECRET },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = once(child, 'close')
  const end = async () => {
    child.kill('SIGKILL')
    await ended
  }
  for await (const line of createInterface({ input: child.stdout })) {
    const [, port] = /^port (\d+)$/.exec(line) ?? []
    if (port !== undefined) return { url: `http://127.0.0.1:${port}/api`, end }
  }
  throw new Error(`${file} ended; did you run npm ci --prefix test/real/frameworks? ${said}`)
}

describe.each(['express.js', 'fastify.js', 'koa.js', 'hono.js', 'nest.js'])(
  'the program %s of docs/guides/live-frameworks.md',
  (file) => {
    let url = ''
    beforeAll(async () => {
      const program = await start(file)
      ;({ url } = program)
      return program.end
    })

    it('serves a gateway below its prefix, and ends the streams of those who are gone', async () => {
      const token = await (await fetch(`${url}/token`, { method: 'POST' })).text()
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const page = new AbortController()
      const follow = () =>
        fetch(`${url}/live/stream`, {
          method: 'POST',
          headers,
          body: JSON.stringify({ views: [{ view: 'groups' }] }),
          signal: page.signal,
        })
      const streams = await Promise.all(Array.from({ length: 20 }, follow))
      const reader = streams[0]?.body?.pipeThrough(new TextDecoderStream()).getReader()
      let frames = ''
      while (!frames.includes('event: current')) frames += (await reader?.read())?.value ?? 'event: current'

      expect(streams.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
      expect(frames.match(/^event: \w+/gm)).toEqual(['event: open', 'event: snapshot', 'event: current'])
      // As many as a subject may have.
      expect((await follow()).status).toBe(429)
      page.abort()
      await expect
        .poll(async () => {
          const response = await fetch(`${url}/live/stream?view=groups`, { headers })
          await response.body?.cancel()
          return response.status
        })
        .toBe(200)
    })

    it("answers what is not there, and what has no token, with the gateway's own errors", async () => {
      const codeOf = async (path: string) => {
        const response = await fetch(url + path)
        return [response.status, (await response.json()).error.code]
      }

      expect(await codeOf('/live/nothing')).toEqual([404, 'invalid'])
      expect(await codeOf('/live/stream?view=groups')).toEqual([401, 'unauthenticated'])
    })

    it('receives what is signed, and refuses what is not', async () => {
      const body = JSON.stringify({ type: 'task_run.status', data: { note: 'na\u00efve ✓' } })
      const post = async (secrets: string) =>
        (await fetch(`${url}/webhooks`, { method: 'POST', headers: sign({ body, secrets }), body })).status

      expect([await post(SECRET), await post('forged')]).toEqual([204, 401])
    })
  },
)

it("a view, and the status of a connection, are sources of Angular's toSignal for its own types", async () => {
  const { folder } = installed
  const page = `
    import type { Signal } from '@angular/core'
    import { toSignal } from '@angular/core/rxjs-interop'
    import { connect } from 'rivulet/live'
    import type { LiveStatus, ViewShape, ViewSnapshot } from 'rivulet/live'

    const live = connect<{ groups: ViewShape<{ n: number }> }>({ url: '/live', getToken: () => '' })
    export const rows: Signal<ViewSnapshot<{ n: number }> | undefined> = toSignal(live.view('groups'))
    export const status: Signal<LiveStatus> = toSignal(live.status, { requireSync: true })
    // @ts-expect-error It is no source of numbers.
    export const wrong: Signal<number> = toSignal(live.status, { requireSync: true })
  `
  await writeFile(join(folder, 'page.ts'), page)
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const options = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    '',
  ]
  const compiling = promisify(execFile)(process.execPath, [compiler, ...options, 'page.ts'], { cwd: folder })

  expect(await compiling.catch(({ stdout }) => ({ stdout }))).toMatchObject({ stdout: '' })
})
