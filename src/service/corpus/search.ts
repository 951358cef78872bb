import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
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
import { DocumentCache, type StoredDocument } from './document-cache.ts'
import type { DocumentKind } from './document-kind.ts'
import { COUNTED_PASSAGES, scoreDocuments } from './document-score.ts'
import { toSource } from './document-source.ts'
import { README_NAMES } from './entities.ts'
import { Frequencies } from './frequencies.ts'
import { anyTerm, everyTerm } from './match.ts'
import { type SearchTerms, searchTerms } from './query-terms.ts'
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

/** The passages that a search has read, by their ids. */
type Passages = Map<number, StoredPassage>

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
  readonly passages: readonly number[]
}

/** Searches passages and documents. */
export class CorpusSearch {
  readonly #everywhere: StatementSync
  readonly #restricted: StatementSync
  readonly #hosts: StatementSync
  readonly #documents: DocumentCache
  readonly #frequencies: Frequencies
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
    this.#documents = new DocumentCache(database)
    this.#frequencies = new Frequencies(database)
    this.#passages = prepareArrays(
      database,
      'SELECT id, text, gap FROM corpus_passages WHERE id IN (SELECT value FROM json_each(?))',
    )
    this.#document = database.prepare(
      'SELECT id, url, title, publish_date, kind FROM corpus_files WHERE url = ? AND visible = 1',
    )
    this.#text = database.prepare(
      "SELECT group_concat(text || gap, '') AS text FROM (SELECT text, gap FROM corpus_passages WHERE id >= ? AND id < ? ORDER BY id)",
    )
  }

  /** See `Corpus.search`. */
  search(query: CorpusQuery, budget: ExcerptBudget): DocumentHit[] {
    if (query.limit < 1) return []
    const terms = this.#terms(query)
    const restriction = restrictionOf(query, this.#hosts)
    const passages: Passages = new Map()
    let width = Math.max(MIN_PASSAGES, query.limit * PASSAGES_PER_HIT)
    for (;;) {
      const matches = this.#rank(expressionOf(query, terms), restriction, width)
      const findings = this.#findings(query, terms, matches, restriction, passages)
      if (matches.length < width || findings.length >= query.limit) {
        return this.#hits(findings.slice(0, query.limit), budget, passages)
      }
      width *= WIDENING
    }
  }

  /** The documents of passages, best first; of documents with the same text only the best. Reads passages into `stored`. */
  #findings(
    query: CorpusQuery,
    terms: SearchTerms,
    matches: readonly Match[],
    restriction: Restriction | undefined,
    stored: Passages,
  ): Finding[] {
    const byDocument = Map.groupBy(matches, ({ document }) => document)
    const found = this.#documents.withIds([...byDocument.keys()])
    const countedOf = (id: number) => byDocument.get(id)?.slice(0, COUNTED_PASSAGES) ?? []
    this.#load(
      stored,
      found.flatMap(({ id }) => [firstPassage(id), ...countedOf(id).map(({ passage }) => passage)]),
    )
    if (query.match !== 'all') found.push(...this.#readmesOf(found, restriction))
    const candidates = found.map((document) => ({
      document,
      // That of a README that a manifest has brought is not read, since no passage of it matches.
      beginning: stored.get(firstPassage(document.id))?.text,
      passages: countedOf(document.id).map(({ passage, score }) => ({
        text: stored.get(passage)?.text ?? '',
        score,
      })),
    }))
    const texts = new Set<string>()
    return scoreDocuments(terms, candidates)
      .toSorted((a, b) => b.score - a.score || a.document.id - b.document.id)
      .filter(({ document: { textHash } }) => !texts.has(textHash) && texts.add(textHash))
      .map(({ document: { id, source }, score }) => ({
        source,
        score,
        // A README that a manifest has brought is shown from its beginning.
        passages: byDocument.get(id)?.map(({ passage }) => passage) ?? [firstPassage(id)],
      }))
  }

  #hits(findings: readonly Finding[], budget: ExcerptBudget, stored: Passages): DocumentHit[] {
    this.#load(
      stored,
      findings.flatMap(({ passages }) => passagesAround(passages, budget)),
    )
    let charactersLeft = budget.charactersInTotal ?? Infinity
    return findings.map(({ source: { url, title, publishDate, kind }, score, passages }, index) => {
      // The unused share of a hit is divided among the hits after it.
      const share = Math.floor(charactersLeft / (findings.length - index))
      const charactersPerResult = Math.min(budget.charactersPerResult, share)
      const excerpts = excerptsAround(passages, stored, { ...budget, charactersPerResult })
      charactersLeft -= excerpts.reduce((sum, { length }) => sum + length, 0)
      return { url, title, publishDate, kind, excerpts, score }
    })
  }

  /** See `Corpus.unusedTerms`. */
  unusedTerms(query: Pick<CorpusQuery, 'queries' | 'objective' | 'match'>): readonly string[] {
    return this.#terms(query).dropped
  }

  #terms(query: Pick<CorpusQuery, 'queries' | 'objective' | 'match'>): SearchTerms {
    return searchTerms(query.match === 'all' ? { queries: query.queries } : query, this.#frequencies)
  }

  /** Must be called after each change of the index. */
  indexChanged(): void {
    this.#frequencies.reset()
    this.#documents.reset()
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
    const stored: Passages = new Map()
    this.#load(
      stored,
      found.map(({ passage }) => passage),
    )
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
    if (query.limit < 1) return
    const expression = expressionOf(query, this.#terms(query))
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

  /** The READMEs next to manifests among these documents, unless they are among them or are not allowed. */
  #readmesOf(
    found: readonly StoredDocument[],
    restriction: Restriction | undefined,
  ): readonly StoredDocument[] {
    const foldersOf = (kind: DocumentKind) =>
      found.filter(({ source }) => source.kind === kind).map(({ path }) => dirname(path))
    const withReadme = new Set(foldersOf('readme'))
    const paths = foldersOf('manifest')
      .filter((folder) => !withReadme.has(folder))
      .flatMap((folder) => README_NAMES.map((name) => join(folder, name)))
    if (paths.length === 0) return []
    const ids = new Set(found.map(({ id }) => id))
    return this.#documents.withPaths(paths, restriction).filter(({ id }) => !ids.has(id))
  }

  #rank(expression: string | undefined, restriction: Restriction | undefined, width: number): Match[] {
    if (expression === undefined) return []
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
    const read = (id: number): DocumentSource | undefined => {
      const [document] = this.#documents.withIds([id])
      if (document === undefined || originals.has(document.textHash)) return undefined
      originals.add(document.textHash)
      return document.source
    }
    return (document) => {
      if (!sources.has(document)) sources.set(document, read(document))
      return sources.get(document)
    }
  }

  /** Reads the passages with these ids that exist, unless they were read. */
  #load(stored: Passages, ids: readonly number[]): void {
    const missing = ids.filter((id) => !stored.has(id))
    if (missing.length === 0) return
    for (const { 0: id, 1: text, 2: gap } of this.#passages.all(JSON.stringify(missing))) {
      stored.set(Number(id), { text: String(text), gap: String(gap) })
    }
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

function expressionOf({ match }: CorpusQuery, { queries }: SearchTerms): string | undefined {
  return match === 'all' ? everyTerm(queries) : anyTerm(queries)
}

function hashOf(url: string, text: string): string {
  return createHash('sha256').update(`${url}\0${text}`).digest('hex')
}
