import { readdirSync, readFileSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { installPackage } from './package/installed.ts'
import type { InstalledPackage } from './package/installed.ts'

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

describe('the examples', () => {
  it.each(EXAMPLES)('%s runs to its end in a clone, and has something to say', async (file) => {
    expect((await inClone(file)).stdout.trim()).not.toBe('')
  })

  it.each(EXAMPLES)('%s runs as it is in the installed package too', async (file) => {
    expect((await inInstalledPackage(file)).stdout.trim()).not.toBe('')
  })

  it('answer what RxJS does with what its documents say of it', async () => {
    const { stdout } = await inClone('first-pipeline.js')

    expect(stdout).toMatch(/trun_\w+ \S.*Reactive[ -]Extensions/)
  })

  it('print an answer that follows the schema, and why another does not', async () => {
    const { stdout } = await inClone('typed-answers.js')

    expect(stdout).toContain('When was Acme founded? 1949, the jubilee is in 2049')
    expect(stdout).toContain(
      'When was Initech founded? the output does not fit the schema: founded: a year is missing',
    )
    expect(stdout).toContain('1 of 2 runs did not complete')
  })

  it('read a log twice, each consumer from its own position', async () => {
    const { stdout } = await inClone('event-log.js')

    expect(stdout).toMatch(/^a batch of 2\ntrun_\w+ revision 1: /)
    expect(stdout.match(/revision 1: /g)).toHaveLength(2)
  })

  it("stand in the README as they stand in the folder, the first pipeline's lines, within its first 40", () => {
    const readme = readFileSync('README.md', 'utf8').split('\n').slice(0, 40).join('\n')

    expect(readme).toContain(readFileSync('examples/first-pipeline.js', 'utf8').trim())
  })
})
