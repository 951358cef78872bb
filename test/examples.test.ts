import { globSync, readdirSync, readFileSync } from 'node:fs'
import { cp, symlink } from 'node:fs/promises'
import { execFile, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { ROOT } from './package/build.ts'
import type { InstalledPackage } from './package/build.ts'
import { installPackage } from './package/installed.ts'
import { tablesOf } from './support/markdown-table.ts'
import { openPageInJsdom } from './support/page-in-jsdom.ts'

// Each is a process that indexes documents.
vi.setConfig({ testTimeout: 60_000 })

const EXAMPLES = readdirSync('examples').filter((name) => name.endsWith('.js'))

let installed: InstalledPackage

beforeAll(async () => {
  installed = await installPackage()
}, 60_000)

afterAll(() => installed[Symbol.asyncDispose]())

const runs = new Map<string, Promise<{ readonly stdout: string }>>()

/** As `npm run example examples/FILE` does, once for all tests of its output. */
function inClone(file: string): Promise<{ readonly stdout: string }> {
  const run =
    runs.get(file) ??
    promisify(execFile)(process.execPath, ['--conditions=rivulet-source', `examples/${file}`])
  runs.set(file, run)
  return run
}

const inInstalledPackage = (file: string) => installed.node([`node_modules/rivulet/examples/${file}`])

/** Starts the example of a page in a folder of a user, and opens the page in a browser without a screen. */
async function openPage(): Promise<Document> {
  for (const name of ['react-dom', 'rolldown']) {
    await symlink(join(ROOT, 'node_modules', name), join(installed.folder, 'node_modules', name), 'junction')
  }
  const folder = join(installed.folder, 'live-page')
  await cp('examples/live-page', folder, { recursive: true })
  const server = spawn(process.execPath, [join(folder, 'server.js')], {
    cwd: installed.folder,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void server.kill())
  const url = String(await firstLine(server.stdout))

  return openPageInJsdom(url)
}

async function firstLine(lines: NodeJS.ReadableStream): Promise<string | undefined> {
  for await (const line of createInterface(lines)) return line
  return undefined
}

describe('the example of a page', () => {
  it('has fewer than 80 lines in all', () => {
    const files = readdirSync('examples/live-page').filter((file) => file !== 'README.md')
    const lines = files.flatMap((file) =>
      readFileSync(`examples/live-page/${file}`, 'utf8').trim().split('\n'),
    )

    expect(files).toEqual(['page.jsx', 'server.js'])
    expect(lines.length).toBeLessThan(80)
  })

  it('shows answers as they come, and those to questions of its user', async () => {
    const document = await openPage()
    const answers = () => [...document.querySelectorAll('p')].map(({ textContent }) => textContent)
    const until = (assert: () => void) => vi.waitFor(assert, { timeout: 30_000 })
    await until(() => expect(answers()).toEqual([expect.stringMatching(/Reactive[ -]Extensions|RxJS/)]))
    await until(() => expect(document.querySelector('output')?.textContent).toBe('live'))

    const input = document.querySelector('input')
    if (input === null) throw new Error('the page has no input')
    input.value = 'How is RxJS installed?'
    document.querySelector('form')?.requestSubmit()

    await until(() => expect(answers()).toHaveLength(2))
    await until(() => expect(answers().join()).toMatch(/npm install|install/))
  })
})

describe('the examples', () => {
  it.each(EXAMPLES)('%s runs to its end in a clone, and has something to say', async (file) => {
    expect((await inClone(file)).stdout.trim()).not.toBe('')
  })

  it.each(EXAMPLES)('%s runs as it is in the installed package too', async (file) => {
    expect((await inInstalledPackage(file)).stdout.trim()).not.toBe('')
  })

  it('answer what RxJS does with what its documents say of it', async () => {
    const { stdout } = await inClone('first-pipeline.js')

    expect(stdout).toMatch(/trun_\w+ .*Reactive[ -]Extensions/)
  })

  it('print an answer that follows the schema, and why another does not', async () => {
    const { stdout } = await inClone('typed-answers.js')

    expect(stdout).toContain('When was Acme founded? 1949, the jubilee is in 2049')
    expect(stdout).toContain(
      'When was Initech founded? the output does not fit the schema: founded: a year is missing',
    )
    expect(stdout).toContain('1 of 2 runs did not complete')
  })

  it('follow a single run to its answer', async () => {
    const { stdout } = await inClone('single-run.js')

    expect(stdout).toMatch(/^(trun_\w+) queued/)
    expect(stdout).toMatch(/trun_\w+ completed .*1949/)
    expect(stdout).toMatch(/anvils/)
  })

  it('find what meets a condition, and nothing else', async () => {
    const { stdout } = await inClone('find-all.js')

    expect(stdout).toMatch(/^match: Acme/m)
    expect(stdout).toMatch(/^match: Globex/m)
    expect(stdout).not.toContain('Initech')
    expect(stdout).toMatch(/over: completed\n$/)
  })

  it('continue a conversation, with the sources of an answer', async () => {
    const { stdout } = await inClone('chat.js')

    expect(stdout).toMatch(/Acme makes\nAcme makes anvils\./)
    expect(stdout).toMatch(/1949.*url_citation/s)
  })

  it('read a log twice, each consumer from its own position', async () => {
    const { stdout } = await inClone('event-log.js')

    expect(stdout.match(/ended as completed\n/g)).toHaveLength(2)
    expect(stdout.match(/revision 1: /g)).toHaveLength(2)
  })

  it('post each run to an HTTP service once, and again after 503', async () => {
    const { stdout } = await inClone('send-events.js')

    expect(stdout.match(/^task_run\.state trun_\w+ completed$/gm)).toHaveLength(2)
    expect(stdout).toMatch(/^3 requests$/m)
  })

  it('keep each event once in a table of their own, in fewer than 40 lines', async () => {
    const { stdout } = await inClone('own-table.js')

    expect(stdout).toMatch(/events: [1-9]\d*, repeated: 0 /)
    expect(readFileSync('examples/own-table.js', 'utf8').trim().split('\n').length).toBeLessThan(40)
  })

  it('are each listed once in their README', () => {
    const cells = tablesOf('examples/README.md').flatMap(({ rows }) => rows.map(([link]) => link))
    const listed = cells.map((link = '') => /^\[([^\]]+)\]\(\1\)$/.exec(link)?.[1])
    const programs = readdirSync('examples').filter((name) => name !== 'README.md')

    expect(listed.toSorted()).toEqual(programs.toSorted())
  })

  it('import from at most four entry points', () => {
    const placesOf = (file: string) => new Set(readFileSync(file, 'utf8').match(/(?<=from ')rivulet[^']*/g))
    const numbers = globSync('examples/**/*.{js,jsx}').map((file) => placesOf(file).size)

    expect(Math.min(...numbers)).toBeGreaterThan(0)
    expect(Math.max(...numbers)).toBeLessThanOrEqual(4)
  })

  it("stand in the README as they stand in the folder, the first pipeline's lines, within its first 40", () => {
    const readme = readFileSync('README.md', 'utf8').split('\n').slice(0, 40).join('\n')

    expect(readme).toContain(readFileSync('examples/first-pipeline.js', 'utf8').trim())
  })
})
