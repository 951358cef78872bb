import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Plugin } from 'rolldown'

/**
 * Removes the declarations that no entry imports. tsc writes one per source file; those of the service's and the command's insides
 * have types of bundled packages, which users do not have.
 */
export function publicDeclarations(entries: readonly string[]): Plugin {
  return {
    name: 'public-declarations',
    writeBundle({ dir }) {
      if (dir === undefined) return
      const reached = reachedFrom(entries.map((entry) => resolve(dir, entry)).filter(existsSync))
      for (const file of globSync('**/*.d.ts', { cwd: dir }).map((path) => resolve(dir, path))) {
        if (!reached.has(file)) rmSync(file)
      }
    },
  }
}

/** The declarations and their relative imports, transitively. */
export function reachedFrom(entries: readonly string[]): ReadonlySet<string> {
  const reached = new Set<string>(entries)
  // Iterating a Set includes entries that are added meanwhile.
  for (const file of reached) {
    for (const name of importsOf(file)) {
      if (name.startsWith('.')) reached.add(join(dirname(file), name.replace(/\.[jt]s$/, '.d.ts')))
    }
  }
  return reached
}

/** The modules that a declaration file imports, without those in its comments. */
export function importsOf(file: string): string[] {
  const code = readFileSync(file, 'utf8').replaceAll(/\/\*[^]*?\*\//g, '')
  return [...code.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, name = '']) => name)
}
