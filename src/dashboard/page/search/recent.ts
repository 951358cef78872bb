import type { SearchesRow } from '../rows.ts'

/**
 * The queries of recorded searches, the latest first, each once. A query that is the beginning of a later one was only a step of typing it,
 * and is left out.
 */
export function recentQueries(rows: Iterable<SearchesRow>): string[] {
  const queries = [...rows]
    .flatMap(({ searches }) => searches)
    .toSorted((a, b) => b.recorded - a.recorded)
    .flatMap(({ request }) => request.search_queries?.[0] ?? [])
  const kept: string[] = []
  for (const query of queries) {
    if (!kept.some((later) => later.startsWith(query))) kept.push(query)
  }
  return kept
}
