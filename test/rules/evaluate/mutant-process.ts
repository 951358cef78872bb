/**
 * Evaluates random streams with each mutant of the engine, in one process: `mutant-process.ts`. Prints a line of JSON for each: its name, and
 * whether the property failed.
 */
import { registerHooks } from 'node:module'
import * as fc from 'fast-check'
import { isDeepStrictEqual } from 'node:util'
import type { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import { caseOf, expectedOf, KINDS, run, transitionsOf } from './equivalence.ts'
import { ENGINE_MUTANTS } from './mutants.ts'

const ROOT = new URL('../../../src/rules/evaluate/', import.meta.url).href

// Each mutant is an instance of the modules of its own, by a parameter of their URLs.
registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context)
    const mutant =
      context.parentURL === undefined ? null : new URL(context.parentURL).searchParams.get('mutant')
    if (mutant === null || !resolved.url.startsWith(ROOT)) return resolved
    return { ...resolved, url: urlOf(resolved.url, mutant) }
  },
  load(url, context, nextLoad) {
    const { searchParams } = new URL(url)
    const mutant = ENGINE_MUTANTS[searchParams.get('mutant') ?? '']
    const loaded = nextLoad(url, context)
    if (mutant === undefined || url.split('?')[0] !== ROOT + mutant.file) return loaded
    const source = String(loaded.source)
    if (!source.includes(mutant.text)) throw new Error(`${mutant.file} does not have ${mutant.text}`)
    return { ...loaded, source: source.replace(mutant.text, mutant.replacement) }
  },
})

for (const [name, { kind: given }] of Object.entries(ENGINE_MUTANTS)) {
  const kind = KINDS.find((each) => each === given)
  if (kind === undefined) throw new Error(`there is no kind ${given}`)
  const engine: { readonly InMemoryRules: typeof InMemoryRules } = await import(
    urlOf(`${ROOT}in-memory.ts`, name)
  )
  const { failed, numRuns } = fc.check(
    fc.property(caseOf(kind), (each) => {
      const found = transitionsOf(run(engine.InMemoryRules, each))
      return isDeepStrictEqual(found, expectedOf(each, found))
    }),
    // Always the same streams, so that a mutant is not found by luck.
    { numRuns: 2_000, endOnFailure: true, seed: 1 },
  )
  process.stdout.write(`${JSON.stringify({ name, failed, numRuns })}\n`)
}

function urlOf(file: string, mutant: string): string {
  return `${file}?mutant=${encodeURIComponent(mutant)}`
}
