import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { Turns } from '../turns.ts'
import { TOKENIZER } from './tables.ts'

/** A text that matches. */
interface RankedText {
  readonly id: number
  /** Its BM25 among the texts of the call, higher is better. */
  readonly score: number
}

/** Characters that are indexed at once: at most about 10 ms of work, if each second one is a word. */
const BATCH_LENGTH = 32_768

/** The rankings of all services of this process. */
const rankings = new Turns()

/**
 * Ranks texts that are not in the corpus as a search ranks passages: those that match an FTS5 expression, best first, at most `limit`.
 * One call after the other. Yields to the event loop while it indexes the texts. Rejects with the reason of the signal if that is aborted
 * before its turn.
 */
export function rankTexts(
  texts: Iterable<readonly [id: number, text: string]>,
  expression: string,
  limit: number,
  signal?: AbortSignal,
): Promise<RankedText[]> {
  return rankings.take(() => indexAndRank(texts, expression, limit), signal)
}

async function indexAndRank(
  texts: Iterable<readonly [id: number, text: string]>,
  expression: string,
  limit: number,
): Promise<RankedText[]> {
  const database = new DatabaseSync(':memory:')
  try {
    database.exec(
      `CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', tokenize = '${TOKENIZER}'); BEGIN`,
    )
    const insert = database.prepare('INSERT INTO texts (rowid, text) VALUES (?, ?)')
    let length = 0
    for (const [id, text] of texts) {
      insert.run(id, text)
      length += text.length
      if (length < BATCH_LENGTH) continue
      length = 0
      // oxlint-disable-next-line no-await-in-loop -- the event loop gets its turn between two batches
      await setImmediate()
    }
    // FTS5 ranks the best match lowest.
    return database
      .prepare(
        'SELECT rowid, bm25(texts) AS rank FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?',
      )
      .all(expression, limit)
      .map(({ rowid, rank }) => ({ id: Number(rowid), score: -Number(rank) }))
  } finally {
    database.close()
  }
}
