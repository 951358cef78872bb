import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** The folder of a user who has the package installed, with the JavaScript as it is built now. */
let folder = ''
const installed = (path: string) => join(folder, 'node_modules/rivulet', path)
const run = (file: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) =>
  promisify(execFile)(process.execPath, [file, ...args], { cwd: folder, env })

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rivulet-package-'))
  await mkdir(installed('.'), { recursive: true })
  await copyFile(join(root, 'package.json'), installed('package.json'))
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    const link = join(folder, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(join(root, 'node_modules', name), link, 'junction')
  }
  const bundler = join(root, 'node_modules/rolldown/bin/cli.mjs')
  const args = [bundler, '--config', 'rolldown.config.ts', '--dir', installed('dist')]
  await promisify(execFile)(process.execPath, args, { cwd: root })
}, 60_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

/** All files that package.json leads users to, but for the types, which tsc writes. */
function filesNamed(value: unknown): string[] {
  if (typeof value === 'string') return value.endsWith('.js') ? [value] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(filesNamed) : []
}

describe('the built package', () => {
  it('has every file that package.json names', () => {
    const { bin, exports, imports } = manifest
    const files = filesNamed([bin, exports, imports])

    expect(files).toHaveLength(8)
    expect(files.filter((file) => !existsSync(installed(file)))).toEqual([])
  })

  it('holds no module twice', () => {
    const maps = globSync('**/*.js.map', { cwd: installed('dist') })
    const modules = maps.flatMap((map) => JSON.parse(readFileSync(installed(`dist/${map}`), 'utf8')).sources)

    expect(modules.length).toBeGreaterThan(100)
    expect(modules.length).toBe(new Set(modules.map((path) => path.replace(/^(\.\.\/)+/, ''))).size)
  })

  it('needs nothing but its dependencies, whichever of its files is loaded', async () => {
    const files = globSync('{chunks,operators,src/{service,state,transport,webhooks}}/*.js', {
      cwd: installed('dist'),
    })
    const program = files.map((file) => `import './node_modules/rivulet/dist/${file}'`)
    await writeFile(join(folder, 'imports.mjs'), [...program, "process.stdout.write('loaded')"].join('\n'))

    expect(files.length).toBeGreaterThan(8)
    expect((await run('imports.mjs')).stdout).toBe('loaded')
  })

  it('runs a pipeline through all of its entries, which know the same classes and gates', async () => {
    await copyFile(join(import.meta.dirname, 'program.js'), join(folder, 'program.mjs'))

    const { stdout } = await run('program.mjs')

    expect(JSON.parse(stdout)).toEqual({
      handled: ['about brooks', 'about rivers'],
      gate: true,
      errors: { operators: true, webhooks: true, service: true, sqlite: true, exchange: true },
    })
  })

  it('has a command that knows its version, and the errors of the library', async () => {
    const command = installed(manifest.bin.rivulet)

    expect((await run(command, ['--version'])).stdout.trim()).toBe(manifest.version)
    await expect(run(command, ['search', 'rivers'])).rejects.toMatchObject({ code: 2 })
  })
})
