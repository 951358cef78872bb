import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

/** An entry point of code, and what it exports. */
export interface EntryPoint {
  readonly name: string
  readonly values: Readonly<Record<string, unknown>>
}

/** The entry points of package.json, from the sources. */
export async function entryPoints(): Promise<readonly EntryPoint[]> {
  const { exports }: { readonly exports: Readonly<Record<string, string | Record<string, string>>> } =
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const found: EntryPoint[] = []
  for (const [path, target] of Object.entries(exports)) {
    const file = typeof target === 'string' ? undefined : target['rivulet-source']
    if (file === undefined) continue
    found.push({
      name: path.replace('.', 'rivulet'),
      values: await import(/* @vite-ignore */ join(root, file)),
    })
  }
  return found
}
