import type { CorpusQuery } from './corpus.ts'
import { significantTerms } from './terms.ts'

/** Maximum number of terms of a search. More terms are slower, since each is a scan of its postings, and hardly better. */
export const MAX_TERMS = 32
/** Maximum length of a query that is read, in characters; the limit of requests. */
const MAX_QUERY_LENGTH = 5_000

/**
 * The FTS5 expression for a query; undefined if the query has no terms.
 *
 * User input cannot contain FTS5 syntax (`NEAR(`, `col:`, `*`, quotes): terms are letters, marks and digits only, and are
 * quoted.
 */
export function matchExpression(query: CorpusQuery): string | undefined {
  return query.match === 'all' ? everyTerm(query.queries) : anyTerm(query)
}

function anyTerm({ queries, objective = '' }: CorpusQuery): string | undefined {
  const terms = new Set([...queries, objective].flatMap(queryTerms))
  if (terms.size === 0) return undefined
  return [...terms].slice(0, MAX_TERMS).map(quote).join(' OR ')
}

function everyTerm(queries: readonly string[]): string | undefined {
  const alternatives: string[] = []
  let remaining = MAX_TERMS
  for (const query of queries) {
    const terms = queryTerms(query)
    // A query is not truncated, since it would match other passages.
    if (terms.length === 0 || terms.length > remaining) continue
    remaining -= terms.length
    alternatives.push(`(${terms.map(quote).join(' AND ')})`)
  }
  return alternatives.length === 0 ? undefined : `{title text} : (${alternatives.join(' OR ')})`
}

/** The terms of a query. */
export function queryTerms(query: string): string[] {
  return significantTerms(query.slice(0, MAX_QUERY_LENGTH))
}

function quote(term: string): string {
  return `"${term}"`
}
