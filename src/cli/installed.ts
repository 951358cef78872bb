import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The fields of its package.json that the command reads. */
interface Manifest {
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const MANIFEST = fileURLToPath(import.meta.resolve('rivulet/package.json'))

/** The package.json of this package. */
export function manifest(): Manifest {
  return JSON.parse(readFileSync(MANIFEST, 'utf8'))
}

/** Names of the direct dependencies, sorted. */
export function directDependencies(): string[] {
  const { dependencies, devDependencies, peerDependencies } = manifest()
  const names = Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies })
  return names.toSorted((a, b) => a.localeCompare(b))
}

/** The folder of this package. */
export function packageRoot(): string {
  return dirname(MANIFEST)
}

const DOCUMENT_NAME = /^(?:readme|changelog|history|licen[cs]e|copying|notice|authors)(?:[.-][\w.-]*)?$/i
const NO_TEXT = /\.(?:[cm]?[jt]sx?|json|map|css|png|svg|gif)$/i

/** The documents of a service. */
export interface InstalledDocuments {
  readonly docs: readonly string[]
  include(path: string): boolean
  enter(folder: string): boolean
}

/** The manifests of the installed packages, and their READMEs, changelogs and licences: real text on every machine with this package. */
export async function installedDocuments(): Promise<InstalledDocuments> {
  return { docs: await packageFolders(), include: isPackageDocument, enter: isPackageFolder }
}

/** Folders with installed packages: next to this package's package.json, or its parent if it is a dependency. */
async function packageFolders(): Promise<string[]> {
  const root = packageRoot()
  const around = dirname(root)
  const candidates = [join(root, 'node_modules'), ...(basename(around) === 'node_modules' ? [around] : [])]
  const found = await Promise.all(
    candidates.map((folder) =>
      readdir(folder).then(
        () => folder,
        () => undefined,
      ),
    ),
  )
  return found.filter((folder) => folder !== undefined)
}

function isPackageDocument(path: string): boolean {
  const name = basename(path)
  return name === 'package.json' || (DOCUMENT_NAME.test(name) && !NO_TEXT.test(name))
}

/** Whether the folder belongs to a package, `name` or `@scope/name`. Deeper folders contain code. */
function isPackageFolder(folder: string): boolean {
  return /^(?:[^.@/][^/]*|@[^/]+(?:\/[^/]+)?)$/.test(folder)
}

/** A document of an installed package. */
export interface InstalledDocument {
  readonly package: string
  readonly path: string
}

/** The README files of installed packages, sorted by package name. */
export async function installedReadmes(): Promise<InstalledDocument[]> {
  const folders = await packageFolders()
  const found = await Promise.all(folders.map(readmesBelow))
  return found.flat()
}

/**
 * The packages for the demonstration's questions: the installed direct dependencies, filled up with other installed packages if these are
 * few, as when this package is a dependency itself.
 */
export async function knownPackages(): Promise<string[]> {
  const folders = await packageFolders()
  const installed = new Set((await Promise.all(folders.map(packagesIn))).flat())
  const direct = directDependencies().filter((name) => installed.has(name))
  const others = [...installed].filter((name) => !direct.includes(name) && name !== 'rivulet')
  const names = [...direct, ...others.slice(0, Math.max(0, ENOUGH - direct.length))]
  return names.toSorted((a, b) => a.localeCompare(b))
}

/** The fewest packages for a useful demonstration. */
const ENOUGH = 12

async function readmesBelow(folder: string): Promise<InstalledDocument[]> {
  const packages = await packagesIn(folder)
  const readmes = await Promise.all(
    packages.map(async (name) => {
      const files = await readdir(join(folder, name)).catch(() => [])
      const readme = files.find((file) => /^readme\.(?:md|markdown)$/i.test(file))
      return readme === undefined ? [] : [{ package: name, path: join(folder, name, readme) }]
    }),
  )
  return readmes.flat()
}

/** Names of the packages in a folder, sorted. */
async function packagesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder)
  const scoped = await Promise.all(
    names
      .filter((name) => name.startsWith('@'))
      .map(async (scope) => {
        const inScope = await readdir(join(folder, scope))
        return inScope.map((name) => `${scope}/${name}`)
      }),
  )
  return [...names.filter((name) => /^[^.@]/.test(name)), ...scoped.flat()].toSorted()
}
