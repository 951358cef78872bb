/** Imported before a role's program: puts the mutant of `SOAK_MUTANT` in the place of what the library has. */
import { registerHooks } from 'node:module'
import { MUTANTS } from './mutants.ts'
import type { Mutant } from './mutants.ts'

const mutants: Readonly<Record<string, Mutant>> = MUTANTS
const mutant = mutants[process.env['SOAK_MUTANT'] ?? '']
if (mutant === undefined) throw new Error('SOAK_MUTANT is not the name of a mutant')
const { file, text, replacement } = mutant

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!url.endsWith(file)) return loaded
    const source = String(loaded.source)
    if (!source.includes(text)) throw new Error(`${file} does not have the text of the mutant`)
    return { ...loaded, source: source.replace(text, replacement) }
  },
})
