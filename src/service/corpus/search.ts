import { createHash } from 'node:crypto'
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import { prepareArrays } from '../database.ts'
import type {
  CorpusDocument,
  CorpusQuery,
  DocumentHit,
  DocumentSource,
  ExcerptBudget,
  Passage,
} from './corpus.ts'
import { excerptsAround, passagesAround, type StoredPassage } from './excerpts.ts'
import { matchExpression } from './match.ts'
import { ALL_HOSTS, ALLOWED_DOCUMENTS, type Restriction, restrictionOf } from './restriction.ts'
import { documentOf, documentOfPassage, firstPassage } from './tables.ts'

/** Weights of a term in the title, the path and the passage. */
const WEIGHTS = '4.0, 2.0, 1.0'
/** Number of passages that are ranked per requested hit, so that a hit can have several. */
const PASSAGES_PER_HIT = 8
/** Minimum number of passages that are ranked. */
const MIN_PASSAGES = 64
/** The factor by which more passages are ranked when duplicates and long documents leave too few hits. */
const WIDENING = 8

/** A matching passage. */
interface Match {
  readonly passage: number
  readonly document: number
  readonly score: number
}

/** A matching document, with its matching passages, best first. */
interface Finding {
  readonly source: DocumentSource
  readonly score: number
  readonly passages: number[]
}

/** Searches passages and documents. */
export class CorpusSearch {
  readonly #everywhere: StatementSync
  readonly #restricted: StatementSync
  readonly #hosts: StatementSync
  readonly #source: StatementSync
  readonly #passages: StatementSync
  readonly #document: StatementSync
  readonly #text: StatementSync

  constructor(database: DatabaseSync) {
    this.#everywhere = prepareArrays(database, ranking(''))
    this.#restricted = prepareArrays(
      database,
      ranking(`AND ${documentOf('corpus_terms.rowid')} IN (${ALLOWED_DOCUMENTS})`),
    )
    this.#hosts = database.prepare(ALL_HOSTS)
    this.#source = database.prepare(
      'SELECT url, title, publish_date, text_hash FROM corpus_files WHERE id = ? AND visible = 1',
    )
    this.#passages = prepareArrays(
      database,
      'SELECT id, text, gap FROM corpus_passages WHERE id IN (SELECT value FROM json_each(?))',
    )
    this.#document = database.prepare(
      'SELECT id, url, title, publish_date FROM corpus_files WHERE url = ? AND visible = 1',
    )
    this.#text = database.prepare(
      "SELECT group_concat(text || gap, '') AS text FROM (SELECT text, gap FROM corpus_passages WHERE id >= ? AND id < ? ORDER BY id)",
    )
  }

  /** See `Corpus.search`. */
  search(query: CorpusQuery, budget: ExcerptBudget): DocumentHit[] {
    const found = new Map<number, Finding>()
    const sourceOf = this.#sources()
    this.#collect(query, ({ passage, document, score }) => {
      const finding = found.get(document)
      if (finding !== undefined) finding.passages.push(passage)
      else if (found.size < query.limit) {
        const source = sourceOf(document)
        if (source !== undefined) found.set(document, { source, score, passages: [passage] })
      }
      return found.size
    })
    const findings = [...found.values()]
    const stored = this.#load(findings.flatMap(({ passages }) => passagesAround(passages, budget)))
    let charactersLeft = budget.charactersInTotal ?? Infinity
    return findings.map(({ source: { url, title, publishDate }, score, passages }, index) => {
      // The unused share of a hit is divided among the hits after it.
      const share = Math.floor(charactersLeft / (findings.length - index))
      const charactersPerResult = Math.min(budget.charactersPerResult, share)
      const excerpts = excerptsAround(passages, stored, { ...budget, charactersPerResult })
      charactersLeft -= excerpts.reduce((sum, { length }) => sum + length, 0)
      return { url, title, publishDate, excerpts, score }
    })
  }

  /** See `Corpus.passages`. */
  passages(query: CorpusQuery): Passage[] {
    const found: (Match & { readonly source: DocumentSource })[] = []
    const sourceOf = this.#sources()
    this.#collect(query, (match) => {
      const source = found.length < query.limit ? sourceOf(match.document) : undefined
      if (source !== undefined) found.push({ ...match, source })
      return found.length
    })
    const stored = this.#load(found.map(({ passage }) => passage))
    return found.flatMap(({ source, passage, score }) => {
      const text = stored.get(passage)?.text
      return text === undefined ? [] : [{ ...source, text, hash: hashOf(source.url, text), score }]
    })
  }

  /** See `Corpus.document`. */
  document(url: string): CorpusDocument | undefined {
    const row = this.#document.get(url)
    if (row === undefined) return undefined
    const id = Number(row['id'])
    return {
      ...toSource(row),
      text: String(this.#text.get(firstPassage(id), firstPassage(id + 1))?.['text'] ?? ''),
    }
  }

  /** Calls `take` with matches, best first, until there are enough results. `take` returns the number of results so far. */
  #collect(query: CorpusQuery, take: (match: Match) => number): void {
    const expression = matchExpression(query)
    if (expression === undefined || query.limit < 1) return
    const restriction = restrictionOf(query, this.#hosts)
    let seen = 0
    let width = Math.max(MIN_PASSAGES, query.limit * PASSAGES_PER_HIT)
    for (;;) {
      const matches = this.#rank(expression, restriction, width)
      let results = 0
      for (const match of matches.slice(seen)) results = take(match)
      if (matches.length < width || results >= query.limit) return
      seen = matches.length
      width *= WIDENING
    }
  }

  #rank(expression: string, restriction: Restriction | undefined, width: number): Match[] {
    const parameters = { $expression: expression, $width: width }
    const rows =
      restriction === undefined
        ? this.#everywhere.all(parameters)
        : this.#restricted.all({ ...parameters, ...restriction })
    return rows.map(({ 0: id, 1: rank }): Match => {
      const passage = Number(id)
      // FTS5 ranks the best match lowest.
      return { passage, document: documentOfPassage(passage), score: -Number(rank) }
    })
  }

  /**
   * Reads the documents of results lazily, since most matches are not used. Returns undefined for a document with the same
   * text as an earlier one, and for a document that another one with the same URL hides.
   */
  #sources(): (document: number) => DocumentSource | undefined {
    const sources = new Map<number, DocumentSource | undefined>()
    const originals = new Set<string>()
    const read = (document: number): DocumentSource | undefined => {
      const row = this.#source.get(document)
      if (row === undefined) return undefined
      const text = String(row['text_hash'])
      if (originals.has(text)) return undefined
      originals.add(text)
      return toSource(row)
    }
    return (document) => {
      if (!sources.has(document)) sources.set(document, read(document))
      return sources.get(document)
    }
  }

  /** Reads the passages with these ids that exist. */
  #load(ids: readonly number[]): Map<number, StoredPassage> {
    const rows = this.#passages.all(JSON.stringify(ids))
    return new Map(
      rows.map(({ 0: id, 1: text, 2: gap }) => [Number(id), { text: String(text), gap: String(gap) }]),
    )
  }
}

/**
 * SQL for the best passages. SQLite sorts by `bm25()` with a bounded heap, while FTS5's own `ORDER BY rank` sorts all matches.
 * The plus sign keeps SQLite from preparing the statement again for each width.
 */
function ranking(condition: string): string {
  return `
    SELECT rowid, bm25(corpus_terms, ${WEIGHTS}) AS rank
    FROM corpus_terms
    WHERE corpus_terms MATCH $expression ${condition}
    ORDER BY rank, rowid LIMIT +$width`
}

function hashOf(url: string, text: string): string {
  return createHash('sha256').update(`${url}\0${text}`).digest('hex')
}

/** The source of a row with `url`, `title` and `publish_date`. */
export function toSource({ url, title, publish_date: date }: Record<string, SQLOutputValue>): DocumentSource {
  return { url: String(url), title: String(title), publishDate: typeof date === 'string' ? date : null }
}
