/** Writes the folder `package`, which is published: `npm run package && npm publish ./package`. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')

/** The condition that leads to the sources, which are in the repository alone. */
const SOURCE = 'rivulet-source'

/** The fields that only the repository needs. It is private, so that npm publishes the folder alone. */
const OF_THE_REPOSITORY: ReadonlySet<string> = new Set([
  'private',
  'scripts',
  'devDependencies',
  'overrides',
  'allowScripts',
])

/** The files that npm packs whatever `files` says. */
const ALWAYS_PACKED = ['README.md', 'LICENSE']

if (import.meta.main) {
  const folder = join(ROOT, 'package')
  rmSync(folder, { recursive: true, force: true })
  stagePackage(folder)
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true })
}

/**
 * Writes all of the package but the build. It has a folder of its own, since npm tells the registry what package.json says after
 * `postpack`: what `prepack` had removed there would be back, and a pack that is interrupted would leave the repository changed.
 */
export function stagePackage(folder: string): void {
  const manifest: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const { files } = manifest
  for (const name of [
    ...ALWAYS_PACKED,
    ...files.filter((file) => file !== 'dist' && !file.startsWith('!')),
  ]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  for (const name of files.filter((file) => file.startsWith('!')))
    rmSync(join(folder, name.slice(1)), { recursive: true })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(published(manifest), null, 2)}\n`)
}

interface Manifest extends Readonly<Record<string, unknown>> {
  readonly files: readonly string[]
}

/** The manifest as users have it. */
function published(manifest: Manifest): Readonly<Record<string, unknown>> {
  const fields = Object.entries(manifest).filter(([name]) => !OF_THE_REPOSITORY.has(name))
  return Object.fromEntries(
    fields.map(([name, value]) => [
      name,
      name === 'imports' || name === 'exports' ? withoutSource(value) : value,
    ]),
  )
}

function withoutSource(target: unknown): unknown {
  if (typeof target !== 'object' || target === null) return target
  return Object.fromEntries(
    Object.entries(target).flatMap(([condition, value]) =>
      condition === SOURCE ? [] : [[condition, withoutSource(value)]],
    ),
  )
}
