import type { QueryTerm } from './query-terms.ts'

/** Maximum number of terms that a passage must all have. */
export const MAX_TERMS = 32

/**
 * The FTS5 expression for passages with any of the terms; undefined without terms.
 *
 * User input cannot contain FTS5 syntax (`NEAR(`, `col:`, `*`, quotes): forms are letters, marks, digits and spaces only, and are
 * quoted.
 */
export function anyTerm(queries: readonly (readonly QueryTerm[])[]): string | undefined {
  const forms = new Set(queries.flat().flatMap((term) => term.forms))
  return forms.size === 0 ? undefined : [...forms].map(quote).join(' OR ')
}

/** The FTS5 expression for passages that have, with their title, all terms of one of the queries; undefined without terms. */
export function everyTerm(queries: readonly (readonly QueryTerm[])[]): string | undefined {
  const alternatives: string[] = []
  let remaining = MAX_TERMS
  for (const terms of queries) {
    // A query is not truncated, since it would match other passages.
    if (terms.length === 0 || terms.length > remaining) continue
    remaining -= terms.length
    alternatives.push(`(${terms.map(({ forms }) => `(${forms.map(quote).join(' OR ')})`).join(' AND ')})`)
  }
  return alternatives.length === 0 ? undefined : `{title text} : (${alternatives.join(' OR ')})`
}

function quote(form: string): string {
  return `"${form}"`
}
