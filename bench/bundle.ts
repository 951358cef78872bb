import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import type { OutputChunk } from 'rolldown'

/** Maximum size in kB, so that a page can afford the client. Raise it only for a reason. */
const BOUND_KB = 62

const EVERYTHING = `
  export * from 'rivulet'
  export * from 'rivulet/operators'`

/** What a page of React loads. The inspector is for developers, and is left out by each bundler where it is not used. */
const LIVE_AND_REACT = `
  export * from 'rivulet/live'
  export {
    inlineSnapshot, prefetchView, useAddRuns, useSearch, useStatus, useSuspenseView, useView
  } from 'rivulet/react'`

/** What a page loads that follows one monitor. */
const ONE_MONITOR = `
  import { createMonitorClient } from 'rivulet'
  import { dedupe, ofType } from 'rivulet/operators'
  createMonitorClient({ baseUrl: '/api', apiKey: null })
    .monitors.follow('m')
    .pipe(dedupe(), ofType('monitor.event_stream'))
    .subscribe(console.log)`

/** A part of the package with a limit of its own, checked like {@link BOUND_KB}. */
export interface PartWithLimit {
  readonly name: string
  /** The module to bundle. */
  readonly module: string
  /** The limit in kB of 1,000 bytes, minified and gzipped, with the package's dependencies and without react. */
  readonly boundKb: number
}

/** What has a limit. */
export const PARTS: readonly PartWithLimit[] = [
  { name: 'rivulet and rivulet/operators', module: EVERYTHING, boundKb: BOUND_KB },
  { name: 'a page that follows one monitor', module: ONE_MONITOR, boundKb: 29 },
  { name: 'rivulet/live', module: `export * from 'rivulet/live'`, boundKb: 9 },
  { name: 'rivulet/live and rivulet/react', module: LIVE_AND_REACT, boundKb: 10.6 },
]

/** The bundle for a browser. Sizes in bytes. */
export interface Bundle {
  readonly minified: number
  readonly gzipped: number
  /** The minified size of each module, largest first. Gzip compresses them together. */
  readonly modules: readonly BundledModule[]
}

interface BundledModule {
  /** Path from the project's folder, or the name of the package. */
  readonly name: string
  readonly minified: number
}

const PROJECT = fileURLToPath(new URL('..', import.meta.url))
const ENTRY = 'browser-entry'
const OF_THE_APPLICATION = /^(rxjs|react)(\/|$)/

/** What `rivulet/live` loads where it is used: requests, the sharing between tabs, and the copy on the disk. */
const LOADED_LATER = /[\\/](src[\\/]live[\\/]|chunks[\\/]browser-)(requests|tabs|offline)\.[jt]s$/

/**
 * Bundles a module (default: all of `rivulet` and `rivulet/operators`) for a browser, as an application's bundler does. Without
 * rxjs and react, which the application has itself, and without what is loaded later.
 *
 * @param installed A folder in which the built package is installed. Default: the sources, so that no build is needed.
 */
export async function bundleForBrowsers(module = EVERYTHING, installed?: string): Promise<Bundle> {
  const build = await rolldown({
    input: ENTRY,
    cwd: installed ?? PROJECT,
    platform: 'browser',
    external: [OF_THE_APPLICATION, LOADED_LATER],
    resolve: { conditionNames: installed === undefined ? ['rivulet-source'] : [] },
    plugins: [
      {
        name: ENTRY,
        resolveId: (id) => (id === ENTRY ? id : undefined),
        load: (id) => (id === ENTRY ? module : undefined),
      },
    ],
  })
  const { output } = await build.generate({
    format: 'esm',
    minify: true,
    // Annotations are for another bundler. None follows.
    comments: { annotation: false },
    sourcemap: 'hidden',
  })
  await build.close()
  const [chunk, ...more] = output.filter((part) => part.type === 'chunk')
  if (chunk === undefined || more.length > 0) throw new Error(`${output.length} files instead of one`)
  const foreign = chunk.imports.filter((name) => !OF_THE_APPLICATION.test(name))
  if (foreign.length > 0) throw new Error(`a browser has no ${foreign.join(', ')}`)
  return {
    minified: Buffer.byteLength(chunk.code),
    gzipped: gzipSync(chunk.code, { level: 9 }).length,
    modules: modulesOf(chunk),
  }
}

/** The size of each module. The source map is read per character, since a minifier mixes the modules. */
function modulesOf({ code, map }: OutputChunk): BundledModule[] {
  if (map === null) throw new Error('the bundle has no source map')
  const sources = new SourceMap({ ...map, sourceRoot: '' })
  const sizes = new Map<string, number>()
  for (const [line, text] of code.split('\n').entries()) {
    for (let column = 0; column < text.length; column++) {
      const entry = sources.findEntry(line, column)
      // The bundler's own imports and exports have no source.
      const source: string | undefined = 'originalSource' in entry ? entry.originalSource : undefined
      const name = source === undefined ? 'imports and exports' : moduleName(source)
      sizes.set(name, (sizes.get(name) ?? 0) + Buffer.byteLength(text.charAt(column)))
    }
  }
  return [...sizes]
    .map(([name, minified]) => ({ name, minified }))
    .toSorted((a, b) => b.minified - a.minified)
}

/** The path of a source. The map's paths are relative to the folder of the bundle. */
function moduleName(source: string): string {
  const path = source.replace(/^(\.\.\/)+/, '')
  return /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path
}
