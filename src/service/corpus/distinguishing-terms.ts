import type { QueryTerm, SearchTerms } from './query-terms.ts'

/** The share of a query's weight that its common terms may have. */
const MAX_COMMON_SHARE = 0.3
/** Number of passages from which a term is common. Leaving out fewer saves no time. */
const MIN_COMMON_PASSAGES = 200

/**
 * The terms of a search that distinguish documents; undefined if these are all, or if ranking the others would be cheap.
 *
 * Most of the time of a search is the BM25 of passages, and most passages have one term alone, the commonest. A document with nothing but
 * terms of so little weight ranks after those that have others. So only passages with a distinguishing term are ranked, by all terms. A
 * search of restricted sources ranks all.
 */
export function distinguishing({ queries }: SearchTerms): readonly QueryTerm[] | undefined {
  const all = [...new Map(queries.flat().map((term) => [term.word, term])).values()]
  const common = new Set<string>()
  const isLight = () =>
    queries.every((query) => {
      const weights = query.map(({ word, weight }) => (common.has(word) ? weight : 0))
      return sum(weights) <= MAX_COMMON_SHARE * sum(query.map(({ weight }) => weight))
    })
  for (const { word, passages } of all.toSorted((a, b) => b.passages - a.passages)) {
    if (passages < MIN_COMMON_PASSAGES) break
    common.add(word)
    if (isLight()) continue
    common.delete(word)
    break
  }
  const passagesOf = (terms: readonly QueryTerm[]) => sum(terms.map(({ passages }) => passages))
  const terms = all.filter(({ word }) => !common.has(word))
  return passagesOf(terms) < passagesOf(all) / 2 ? terms : undefined
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
