/**
 * Writes the queries that are derived from descriptions to `tuning.json` and `held.json`: `npx node
 * --conditions=rivulet-source bench/quality/search/derive.ts`. It keeps the paraphrases, which people wrote. Run it only where the set is
 * to change, and note that in docs/internals/quality.md: figures of different sets cannot be compared.
 */
import { writeFileSync } from 'node:fs'
import { HALVES, halfOf } from '../half.ts'
import { readItems } from '../items.ts'
import { describedPackages } from './describe.ts'
import type { Query } from './query.ts'

const described = await describedPackages()
for (const half of HALVES) {
  const paraphrases = readItems<Query>('search', half).filter(({ kind }) => kind === 'paraphrase')
  const descriptions = described
    .filter(({ subject }) => halfOf(subject) === half)
    .map(({ subject, query }): Query => ({ subject, kind: 'description', query }))
  const items = JSON.stringify([...descriptions, ...paraphrases], undefined, 2)
  writeFileSync(new URL(`${half}.json`, import.meta.url), `${items}\n`)
}
