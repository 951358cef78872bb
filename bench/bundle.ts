import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import type { OutputChunk } from 'rolldown'

/** What the browser bundle should weigh, in kB of 1,000 bytes, minified and gzipped: what the figure is held against. */
export const TARGET_KB = 12

/**
 * What it may weigh: the check fails above. It is the present size, rounded up to the next half kB. Who makes the bundle
 * smaller lowers it; raising it takes a reason.
 */
export const BOUND_KB = 42.5

/** What a browser downloads. Sizes in bytes. */
export interface Bundle {
  readonly minified: number
  readonly gzipped: number
  /** What each module weighs in it, minified, the largest first. Gzip takes them all together. */
  readonly modules: readonly BundledModule[]
}

interface BundledModule {
  /** Path from the project's folder, or the name of the package. */
  readonly name: string
  readonly minified: number
}

const PROJECT = fileURLToPath(new URL('..', import.meta.url))
const ENTRY = 'browser-entry'

const EVERYTHING = `
  export * from 'rivulet'
  export * from 'rivulet/operators'`

/**
 * Bundles a module, by default everything that `rivulet` and `rivulet/operators` export, the way an application's bundler
 * does for a browser, without rxjs: that is the application's own.
 */
export async function bundleForBrowsers(module = EVERYTHING): Promise<Bundle> {
  const build = await rolldown({
    input: ENTRY,
    cwd: PROJECT,
    platform: 'browser',
    external: /^rxjs(\/|$)/,
    // From the source, so that nothing has to be built first.
    resolve: { conditionNames: ['rivulet-source'] },
    plugins: [
      {
        name: ENTRY,
        resolveId: (id) => (id === ENTRY ? id : undefined),
        load: (id) => (id === ENTRY ? module : undefined),
      },
    ],
  })
  const { output } = await build.generate({ format: 'esm', minify: true, sourcemap: 'hidden' })
  await build.close()
  const [chunk, ...more] = output.filter((part) => part.type === 'chunk')
  if (chunk === undefined || more.length > 0) throw new Error(`${output.length} files instead of one`)
  const foreign = chunk.imports.filter((name) => name !== 'rxjs')
  if (foreign.length > 0) throw new Error(`a browser has no ${foreign.join(', ')}`)
  return {
    minified: Buffer.byteLength(chunk.code),
    gzipped: gzipSync(chunk.code, { level: 9 }).length,
    modules: modulesOf(chunk),
  }
}

/** Asks the source map of each character where it came from, since minifying mixes the modules. */
function modulesOf({ code, map }: OutputChunk): BundledModule[] {
  if (map === null) throw new Error('the bundle has no source map')
  const sources = new SourceMap({ ...map, sourceRoot: '' })
  const sizes = new Map<string, number>()
  for (const [line, text] of code.split('\n').entries()) {
    for (let column = 0; column < text.length; column++) {
      const entry = sources.findEntry(line, column)
      // What the bundler wrote itself, imports and exports, comes from nowhere.
      const source: string | undefined = 'originalSource' in entry ? entry.originalSource : undefined
      const name = source === undefined ? 'imports and exports' : moduleName(source)
      sizes.set(name, (sizes.get(name) ?? 0) + Buffer.byteLength(text.charAt(column)))
    }
  }
  return [...sizes]
    .map(([name, minified]) => ({ name, minified }))
    .toSorted((a, b) => b.minified - a.minified)
}

/** The map's paths are relative to where the bundle would have been written. */
function moduleName(source: string): string {
  const path = source.replace(/^(\.\.\/)+/, '')
  return /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path
}
