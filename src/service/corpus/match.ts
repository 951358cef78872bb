import type { QueryTerm } from './query-terms.ts'

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
  const alternatives = queries
    .filter((terms) => terms.length > 0)
    .map((terms) => `(${terms.map(({ forms }) => `(${forms.map(quote).join(' OR ')})`).join(' AND ')})`)
  return alternatives.length === 0 ? undefined : `{title text} : (${alternatives.join(' OR ')})`
}

function quote(form: string): string {
  return `"${form}"`
}
