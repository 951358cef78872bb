import type { CorpusQuery } from './corpus.ts'
import { significantTerms } from './terms.ts'

/** Terms of a search, at the most. Each costs a walk through its postings: more make it slower, hardly better. */
export const MOST_TERMS = 32
/** Characters of a query that are read for terms: all of one that a request may hold. */
const LONGEST_QUERY = 5_000

/**
 * The FTS5 expression for a query, or undefined where there is nothing to look for.
 *
 * FTS5 has a language of its own (`NEAR(`, `col:`, `*`, quotes). None of what users write gets into it: terms hold
 * letters, marks and digits only, and each stands in quotes.
 */
export function matchExpression(query: CorpusQuery): string | undefined {
  return query.match === 'all' ? everyTerm(query.queries) : anyTerm(query)
}

function anyTerm({ queries, objective = '' }: CorpusQuery): string | undefined {
  const terms = new Set([...queries, objective].flatMap(queryTerms))
  if (terms.size === 0) return undefined
  return [...terms].slice(0, MOST_TERMS).map(quote).join(' OR ')
}

function everyTerm(queries: readonly string[]): string | undefined {
  const alternatives: string[] = []
  let left = MOST_TERMS
  for (const query of queries) {
    const terms = queryTerms(query)
    // A query with some of its terms left out would fit what it does not mean, so it is all or nothing.
    if (terms.length === 0 || terms.length > left) continue
    left -= terms.length
    alternatives.push(`(${terms.map(quote).join(' AND ')})`)
  }
  return alternatives.length === 0 ? undefined : `{title text} : (${alternatives.join(' OR ')})`
}

/** The words of a query that are looked for. */
export function queryTerms(query: string): string[] {
  return significantTerms(query.slice(0, LONGEST_QUERY))
}

function quote(term: string): string {
  return `"${term}"`
}
