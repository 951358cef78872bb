import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'

/**
 * The FTS5 query alone over the service's own index: its weights, its `OR` of the words, the best ten, prepared once, with the
 * service's page cache size. SQLite sorts by `bm25()` itself, which is faster than FTS5's own `ORDER BY rank`.
 */
export function bareSearch(
  database: DatabaseSync,
): (query: string) => readonly Readonly<Record<string, SQLOutputValue>>[] {
  database.exec('PRAGMA cache_size = -32768')
  const statement = database.prepare(`
    SELECT rowid, bm25(corpus_terms, 4.0, 2.0, 1.0) AS score
    FROM corpus_terms
    WHERE corpus_terms MATCH ?
    ORDER BY score LIMIT 10`)
  return (query) =>
    statement.all(
      query
        .split(' ')
        .map((word) => `"${word}"`)
        .join(' OR '),
    )
}
