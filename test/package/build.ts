import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { stagePackage } from '../../build/package-folder.ts'

const run = promisify(execFile)

export const ROOT = resolve(import.meta.dirname, '../..')

/** The fields of package.json that the tests read. */
interface Manifest {
  readonly version: string
  readonly bin: Readonly<Record<string, string>>
  readonly files: readonly string[]
  readonly exports: unknown
  readonly imports: unknown
  readonly dependencies: Readonly<Record<string, string>>
  readonly engines: { readonly node: string }
  readonly peerDependencies: Readonly<Record<string, string>>
}

export const MANIFEST: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** A user's folder with the package installed from its tarball. Its disposal removes the folder. */
export interface InstalledPackage extends AsyncDisposable {
  readonly folder: string
  /** The path of a file of the installed package. */
  path(file: string): string
  /** Runs Node in the folder; rejects when it fails. */
  node(
    args: readonly string[],
    env?: NodeJS.ProcessEnv,
  ): Promise<{ readonly stdout: string; readonly stderr: string }>
}

/** Builds the package with its types, packs it, and unpacks it into an empty folder, next to its dependencies only. */
export async function buildPackage(): Promise<InstalledPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-package-'))
  const modules = join(folder, 'node_modules')
  const installed = join(modules, 'rivulet')
  await mkdir(installed, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  await linkDependencies(modules)

  const staged = join(folder, 'staged')
  stagePackage(staged)
  const built = join(staged, 'dist')
  await node(ROOT, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', built])
  await bundle(built)
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: staged })
  await run('tar', ['-xzf', join(folder, stdout.trim()), '--strip-components', '1', '-C', installed])
  await rm(staged, { recursive: true })
  return installedIn(folder)
}

/** The package that is installed in this folder, which goes with it. */
export function installedIn(folder: string): InstalledPackage {
  return {
    folder,
    path: (file) => join(folder, 'node_modules/rivulet', file),
    node: (args, env = {}) => node(folder, args, env),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Bundles the package into a folder, as the build does; `maps` adds source maps. */
export async function bundle(folder: string, { maps = false } = {}): Promise<void> {
  const args = ['node_modules/rolldown/bin/cli.mjs', '--config', 'rolldown.config.ts', '--dir', folder]
  await node(ROOT, maps ? [...args, '--sourcemap'] : args)
}

/** Links the dependencies of the repository instead of a download. */
async function linkDependencies(modules: string): Promise<void> {
  const names = Object.keys({ ...MANIFEST.dependencies, ...MANIFEST.peerDependencies })
  for (const name of names) {
    const link = join(modules, name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), link, 'junction')
  }
}

function node(cwd: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return run(process.execPath, args, { cwd, env: { ...process.env, ...env } })
}
