import { DatabaseSync } from 'node:sqlite'
import { TOKENIZER } from './tables.ts'

/** A text that matches. */
export interface RankedText {
  readonly id: number
  /** Its BM25 among the texts of the call, higher is better. */
  readonly score: number
}

/** Ranks texts that are not in the corpus as a search ranks passages, in an index in memory that has the texts of one call at a time. */
export class TextRanking {
  readonly #database = new DatabaseSync(':memory:')
  readonly #insert
  readonly #best

  constructor() {
    this.#database.exec(
      `CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', contentless_delete = 1, tokenize = '${TOKENIZER}')`,
    )
    this.#insert = this.#database.prepare('INSERT INTO texts (rowid, text) VALUES (?, ?)')
    this.#best = this.#database.prepare(
      'SELECT rowid, bm25(texts) AS rank FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?',
    )
  }

  /** The texts that match an FTS5 expression, best first, at most `limit`. */
  rank(
    texts: Iterable<readonly [id: number, text: string]>,
    expression: string,
    limit: number,
  ): RankedText[] {
    this.#database.exec('BEGIN')
    try {
      for (const [id, text] of texts) this.#insert.run(id, text)
      // FTS5 ranks the best match lowest.
      return this.#best
        .all(expression, limit)
        .map(({ rowid, rank }) => ({ id: Number(rowid), score: -Number(rank) }))
    } finally {
      // Empties the index for the next call.
      this.#database.exec('ROLLBACK')
    }
  }

  close(): void {
    this.#database.close()
  }
}
