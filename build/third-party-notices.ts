import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'rolldown'

/** The file in `dist` with the notices. */
const NOTICES_FILE = 'THIRD-PARTY-NOTICES.txt'

/** The licences of packages that have no licence file, as files in `build/licences`. Their package.json and their repositories name them. */
const LICENCE_FILES: Readonly<Record<string, readonly string[]>> = {
  '@bufbuild/cel': ['Apache-2.0.txt'],
  '@bufbuild/cel-spec': ['Apache-2.0.txt'],
  '@bufbuild/protobuf': ['Apache-2.0.txt', 'protobuf-BSD-3-Clause.txt'],
}

/** A package whose code is in the bundle. */
interface BundledPackage {
  readonly name: string
  readonly version: string
  /** SPDX expression, from its package.json. */
  readonly licence: string
  /** The text of its licence file. */
  readonly text: string
}

/**
 * Writes the licences of the bundled packages, as these require. It reads the packages from the modules of the bundle, so that the
 * list matches the distribution. A package without a licence file fails the build.
 *
 * @param others Modules of another bundle of the distribution.
 */
export function thirdPartyNotices(others: Promise<{ readonly modules: readonly string[] }>): Plugin {
  return {
    name: 'third-party-notices',
    async generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
      modules.push(...(await others).modules)
      const folders = new Set(modules.map(packageFolder).filter((folder) => folder !== undefined))
      const source = notices([...folders].map(readPackage))
      this.emitFile({ type: 'asset', fileName: NOTICES_FILE, source })
    },
  }
}

/** The folder of a module's package; undefined for the project's own modules. */
function packageFolder(module: string): string | undefined {
  return /^\0?(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(module)?.[1]
}

function readPackage(folder: string): BundledPackage {
  const { name, version, license: licence } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const own = readdirSync(folder).find((entry) => /^licen[cs]e(-\w+)?(\.(md|txt))?$/i.test(entry))
  const files =
    own === undefined
      ? (LICENCE_FILES[name] ?? []).map((file) => join('build/licences', file))
      : [join(folder, own)]
  if (files.length === 0 || typeof licence !== 'string') {
    throw new Error(`${name} has no licence file: it cannot be bundled`)
  }
  const text = files.map((file) => readFileSync(file, 'utf8').trim()).join('\n\n')
  return { name, version, licence, text }
}

function notices(packages: readonly BundledPackage[]): string {
  const sorted = packages.toSorted((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1))
  const sections = sorted.map(({ name, version, licence, text }) => {
    return `${'-'.repeat(80)}\n${name} ${version} (${licence})\n\n${text}\n`
  })
  return `The command, the embedded service, the alert rules and the dashboard of Rivulet contain code of these packages:\n\n${sections.join('\n')}`
}
