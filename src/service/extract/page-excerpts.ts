import { DatabaseSync } from 'node:sqlite'
import type { ExcerptBudget } from '../corpus/corpus.ts'
import { excerptsAround, shorten, type StoredPassage } from '../corpus/excerpts.ts'
import { matchExpression } from '../corpus/match.ts'
import { splitPassages } from '../corpus/passages.ts'
import { TOKENIZER } from '../corpus/tables.ts'

/** What excerpts are selected for. */
interface ExcerptQuery {
  readonly queries: readonly string[]
  readonly objective?: string | undefined
}

/** Maximum number of passages that are ranked; far more than a budget of excerpts has. */
const MAX_RANKED = 100

/** Selects the excerpts of one page. */
export interface ExcerptSelector {
  /** The passages that match the query best, with those around them. Without a match: the beginning of the text. */
  select(text: string, query: ExcerptQuery, budget: ExcerptBudget): string[]
  close(): void
}

/** Creates a selector, which ranks passages as a search does, in an index in memory that has one page at a time. */
export function createExcerptSelector(): ExcerptSelector {
  const database = new DatabaseSync(':memory:')
  database.exec(
    `CREATE VIRTUAL TABLE page USING fts5 (text, content = '', contentless_delete = 1, tokenize = '${TOKENIZER}')`,
  )
  const insert = database.prepare('INSERT INTO page (rowid, text) VALUES (?, ?)')
  const best = database.prepare(
    `SELECT rowid FROM page WHERE page MATCH ? ORDER BY bm25(page), rowid LIMIT ${MAX_RANKED}`,
  )

  function rank(passages: ReadonlyMap<number, StoredPassage>, expression: string): number[] {
    database.exec('BEGIN')
    try {
      for (const [id, { text }] of passages) insert.run(id, text)
      return best.all(expression).map(({ rowid }) => Number(rowid))
    } finally {
      // Empties the index for the next page.
      database.exec('ROLLBACK')
    }
  }

  return {
    select(text, query, budget) {
      const expression = matchExpression({ ...query, limit: MAX_RANKED })
      if (expression !== undefined) {
        const spans = splitPassages(text)
        const passages = new Map(
          spans.map(({ start, end }, index) => [
            index + 1,
            { text: text.slice(start, end), gap: text.slice(end, spans[index + 1]?.start ?? text.length) },
          ]),
        )
        const ids = rank(passages, expression)
        if (ids.length > 0) return excerptsAround(ids, passages, budget)
      }
      const beginning = shorten(text, budget.charactersPerResult)
      return beginning === '' ? [] : [beginning]
    },
    close: () => database.close(),
  }
}
