import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { PageFile } from './page-file.ts'

const FOLDER = new URL('./page/', import.meta.url)

/** The page, made from its sources. */
export interface BundledPage {
  readonly files: readonly PageFile[]
  /** The paths of the modules in its script. */
  readonly modules: readonly string[]
}

/** Bundles the page from its sources. Once for all, since it takes a second. */
export function pageFiles(): Promise<readonly PageFile[]> {
  bundled ??= bundlePage().then(({ files }) => files)
  return bundled
}

let bundled: Promise<readonly PageFile[]> | undefined

/** Bundles the script and reads the style sheet. */
export async function bundlePage(): Promise<BundledPage> {
  const [{ code, modules }, style] = await Promise.all([
    bundleScript(),
    readFile(new URL('page.css', FOLDER), 'utf8'),
  ])
  return { files: [pageFile(code, 'js'), pageFile(style, 'css')], modules }
}

async function bundleScript(): Promise<{ readonly code: string; readonly modules: readonly string[] }> {
  // A dev dependency: the package has the page that was built.
  const { rolldown } = await import('rolldown')
  await using build = await rolldown({
    input: fileURLToPath(new URL('main.tsx', FOLDER)),
    platform: 'browser',
    resolve: { conditionNames: ['rivulet-source', 'browser', 'import', 'default'] },
    transform: { target: 'es2023', define: { 'process.env.NODE_ENV': '"production"' } },
    logLevel: 'warn',
  })
  const { output } = await build.generate({
    format: 'es',
    codeSplitting: false,
    minify: true,
    comments: false,
  })
  const [script] = output
  return { code: script.code, modules: script.moduleIds }
}

function pageFile(text: string, ending: 'js' | 'css'): PageFile {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return { name: `page-${hash}.${ending}`, bytes: new TextEncoder().encode(text) }
}
