import { createHash } from 'node:crypto'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { CorpusDocument, CorpusQuery, DocumentHit, ExcerptBudget, Passage } from './corpus.ts'
import { excerptsAround, type StoredPassage } from './excerpts.ts'
import { matchExpression } from './match.ts'
import { ALLOWED_DOCUMENTS, type Restriction, restrictionOf } from './source-policy.ts'
import { documentOf, firstPassage } from './tables.ts'

/** How much a term counts in the title, in the path and in the passage itself. */
const WEIGHTS = '4.0, 2.0, 1.0'
/** Passages that are ranked for each hit that is asked for, so that a hit has more than one to show. */
const PASSAGES_PER_HIT = 8
/** Passages that are ranked in any case. */
const LEAST_PASSAGES = 64
/** When copies and long documents leave too few hits, this many times as many passages are ranked. */
const WIDENING = 8

interface Match {
  readonly passage: number
  readonly score: number
  readonly document: number
  readonly url: string
  readonly title: string
  readonly publishDate: string | null
  readonly textHash: string
}

/** Finds passages and documents. Its statements are prepared once. */
export class CorpusSearch {
  readonly #everywhere: StatementSync
  readonly #restricted: StatementSync
  readonly #passage: StatementSync
  readonly #document: StatementSync
  readonly #text: StatementSync

  constructor(database: DatabaseSync) {
    this.#everywhere = database.prepare(ranking(''))
    this.#restricted = database.prepare(
      ranking(`AND ${documentOf('corpus_terms.rowid')} IN (${ALLOWED_DOCUMENTS})`),
    )
    this.#passage = database.prepare('SELECT text, gap FROM corpus_passages WHERE id = ?')
    this.#document = database.prepare(
      'SELECT id, url, title, publish_date FROM corpus_files WHERE url = ? AND visible = 1',
    )
    this.#text = database.prepare(
      "SELECT group_concat(text || gap, '') AS text FROM (SELECT text, gap FROM corpus_passages WHERE id >= ? AND id < ? ORDER BY id)",
    )
  }

  /** See `Corpus.search`. */
  search(query: CorpusQuery, budget: ExcerptBudget): DocumentHit[] {
    const found = new Map<number, Match[]>()
    this.#collect(query, (match, copy) => {
      const matches = found.get(match.document)
      if (matches !== undefined) matches.push(match)
      else if (!copy && found.size < query.limit) found.set(match.document, [match])
      return found.size
    })
    let hitsLeft = found.size
    let charactersLeft = budget.charactersInTotal ?? Infinity
    return [...found.values()].flatMap((matches) => {
      const [best] = matches
      if (best === undefined) return []
      // What one hit leaves of its share goes to those after it.
      const share = Math.floor(charactersLeft / hitsLeft)
      const charactersPerResult = Math.min(budget.charactersPerResult, share)
      const { url, title, publishDate, score } = best
      const ids = matches.map(({ passage }) => passage)
      const excerpts = excerptsAround(ids, (id) => this.#load(id, best.document), {
        ...budget,
        charactersPerResult,
      })
      hitsLeft -= 1
      charactersLeft -= excerpts.reduce((sum, { length }) => sum + length, 0)
      return [{ url, title, publishDate, excerpts, score }]
    })
  }

  /** See `Corpus.passages`. */
  passages(query: CorpusQuery): Passage[] {
    const found: Passage[] = []
    this.#collect(query, (match, copy) => {
      const stored =
        copy || found.length >= query.limit ? undefined : this.#load(match.passage, match.document)
      if (stored !== undefined) {
        const { url, title, publishDate, score } = match
        found.push({ url, title, publishDate, text: stored.text, hash: hashOf(url, stored.text), score })
      }
      return found.length
    })
    return found
  }

  /** See `Corpus.document`. */
  document(url: string): CorpusDocument | undefined {
    const row = this.#document.get(url)
    if (row === undefined) return undefined
    const id = Number(row['id'])
    return {
      url: String(row['url']),
      title: String(row['title']),
      publishDate: textOrNull(row['publish_date']),
      text: String(this.#text.get(firstPassage(id), firstPassage(id + 1))?.['text'] ?? ''),
    }
  }

  /**
   * Hands over matches, best first, and tells for each whether its document is the copy of a better one. `take` returns
   * how many results there are so far. Each match is handed over once.
   */
  #collect(query: CorpusQuery, take: (match: Match, copy: boolean) => number): void {
    const expression = matchExpression(query)
    if (expression === undefined || query.limit < 1) return
    const restriction = restrictionOf(query)
    const originals = new Map<string, number>()
    let seen = 0
    let width = Math.max(LEAST_PASSAGES, query.limit * PASSAGES_PER_HIT)
    for (;;) {
      const matches = this.#rank(expression, restriction, width)
      let results = 0
      for (const match of matches.slice(seen)) {
        if (match === undefined) continue
        const original = originals.get(match.textHash) ?? match.document
        originals.set(match.textHash, original)
        results = take(match, original !== match.document)
      }
      if (matches.length < width || results >= query.limit) return
      seen = matches.length
      width *= WIDENING
    }
  }

  #rank(expression: string, restriction: Restriction | undefined, width: number): (Match | undefined)[] {
    const parameters = { $expression: expression, $width: width }
    const rows =
      restriction === undefined
        ? this.#everywhere.all(parameters)
        : this.#restricted.all({ ...parameters, ...restriction })
    return rows.map((row) => {
      // Another document with the same URL is shown in its place.
      if (row['id'] === null) return undefined
      return {
        passage: Number(row['passage']),
        // FTS5 calls the best match the most negative one.
        score: -Number(row['rank']),
        document: Number(row['id']),
        url: String(row['url']),
        title: String(row['title']),
        publishDate: textOrNull(row['publish_date']),
        textHash: String(row['text_hash']),
      }
    })
  }

  #load(passage: number, document: number): StoredPassage | undefined {
    if (passage < firstPassage(document) || passage >= firstPassage(document + 1)) return undefined
    const row = this.#passage.get(passage)
    return row === undefined ? undefined : { text: String(row['text']), gap: String(row['gap']) }
  }
}

/**
 * The best passages and their documents. The join comes after the limit, and `bm25()` is sorted by SQLite, which keeps
 * only the best while it goes; FTS5's own `ORDER BY rank` sorts every match first.
 */
function ranking(condition: string): string {
  return `
    SELECT passage, rank, file.id, file.url, file.title, file.publish_date, file.text_hash
    FROM (
      SELECT rowid AS passage, bm25(corpus_terms, ${WEIGHTS}) AS rank
      FROM corpus_terms
      WHERE corpus_terms MATCH $expression ${condition}
      ORDER BY rank, rowid LIMIT $width
    ) AS best
    LEFT JOIN corpus_files AS file ON file.id = ${documentOf('best.passage')} AND file.visible = 1
    ORDER BY rank, passage`
}

function hashOf(url: string, text: string): string {
  return createHash('sha256').update(`${url}\0${text}`).digest('hex')
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
