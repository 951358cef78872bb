import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
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
import { bestDocuments } from './best-documents.ts'
import { excerptsAround, passagesAround } from './excerpts.ts'
import { DocumentCache, type StoredDocument } from './document-cache.ts'
import type { DocumentKind } from './document-kind.ts'
import { DocumentScore } from './document-score.ts'
import { toSource } from './document-source.ts'
import { README_NAMES } from './entities.ts'
import { Frequencies } from './frequencies.ts'
import { anyTerm, everyTerm } from './match.ts'
import { PASSAGES_BY_IDS, PassageTexts } from './passage-texts.ts'
import { hasFewTerms, type SearchTerms, searchTerms, wholeQueries } from './query-terms.ts'
import { distinguishing } from './distinguishing-terms.ts'
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
interface DocumentMatch {
  readonly source: DocumentSource
  readonly score: number
  readonly passages: readonly number[]
}

/** One search, whose documents are judged by the passages that match. */
interface DocumentSearch {
  readonly query: CorpusQuery
  readonly score: DocumentScore
  readonly restriction: Restriction | undefined
  readonly texts: PassageTexts
}

/**
 * Searches passages and documents. FTS5 ranks the passages with any of the terms (`query-terms.ts`) by BM25; the best of them decide which
 * documents are read (`best-documents.ts`) and scored (`document-score.ts`). Searches for passages alone stop at BM25.
 */
export class CorpusSearch {
  readonly #everywhere: StatementSync
  readonly #restricted: StatementSync
  readonly #among: StatementSync
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
    // The plus sign keeps SQLite from a new search for each of these passages.
    const among = 'SELECT rowid FROM corpus_terms WHERE corpus_terms MATCH $among'
    this.#among = prepareArrays(database, ranking(`AND +corpus_terms.rowid IN (${among})`))
    this.#hosts = database.prepare(ALL_HOSTS)
    this.#documents = new DocumentCache(database)
    this.#frequencies = new Frequencies(database)
    this.#passages = prepareArrays(database, PASSAGES_BY_IDS)
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
    const texts = new PassageTexts(this.#passages)
    const score = new DocumentScore(terms)
    const expression = expressionOf(query, terms)
    const findingsOf = (matches: readonly Match[]) =>
      this.#findings({ query, score, restriction, texts }, matches)
    let width = Math.max(MIN_PASSAGES, query.limit * PASSAGES_PER_HIT)
    const among = query.match === 'all' ? undefined : anyTerm([distinguishing(terms) ?? []])
    if (expression !== undefined && among !== undefined && restriction === undefined) {
      const parameters = { $expression: expression, $width: width, $among: among }
      const findings = findingsOf(this.#among.all(parameters).map(toMatch))
      if (findings.length >= query.limit) return this.#hits(findings.slice(0, query.limit), budget, texts)
    }
    for (;;) {
      const matches = this.#rank(expression, restriction, width)
      const findings = findingsOf(matches)
      if (matches.length < width || findings.length >= query.limit) {
        return this.#hits(findings.slice(0, query.limit), budget, texts)
      }
      width *= WIDENING
    }
  }

  /** The best documents of passages, best first: as many as the query wants, if there are so many. */
  #findings(
    { query, score, restriction, texts }: DocumentSearch,
    matches: readonly Match[],
  ): DocumentMatch[] {
    const byDocument = Map.groupBy(matches, ({ document }) => document)
    const found = this.#documents.withIds([...byDocument.keys()])
    if (query.match !== 'all') found.push(...this.#readmesOf(found, restriction))
    const candidates = found.map((document) => ({ document, passages: byDocument.get(document.id) ?? [] }))
    return bestDocuments(candidates, score, query.limit, texts).map(
      ({ document: { id, source }, passages, score: value }) => ({
        source,
        score: value,
        // A README that a manifest has brought is shown from its beginning.
        passages: passages.length === 0 ? [firstPassage(id)] : passages.map(({ passage }) => passage),
      }),
    )
  }

  #hits(findings: readonly DocumentMatch[], budget: ExcerptBudget, texts: PassageTexts): DocumentHit[] {
    texts.load(findings.flatMap(({ passages }) => passagesAround(passages, budget)))
    let charactersLeft = budget.charactersInTotal ?? Infinity
    return findings.map(({ source: { url, title, publishDate, kind }, score, passages }, index) => {
      // The unused share of a hit is divided among the hits after it.
      const share = Math.floor(charactersLeft / (findings.length - index))
      const charactersPerResult = Math.min(budget.charactersPerResult, share)
      const excerpts = excerptsAround(passages, texts, { ...budget, charactersPerResult })
      charactersLeft -= excerpts.reduce((sum, { length }) => sum + length, 0)
      return { url, title, publishDate, kind, excerpts, score }
    })
  }

  /** See `Corpus.unusedTerms`. */
  unusedTerms(query: Pick<CorpusQuery, 'queries' | 'objective' | 'match'>): readonly string[] {
    const { queries, objective = '', match } = query
    // Most searches have few terms: their frequencies are not needed.
    const usesAll = match !== 'all' && hasFewTerms([...queries, objective])
    return usesAll ? [] : this.#terms(query).dropped
  }

  #terms(query: Pick<CorpusQuery, 'queries' | 'objective' | 'match'>): SearchTerms {
    return query.match === 'all'
      ? wholeQueries(query.queries, this.#frequencies)
      : searchTerms(query, this.#frequencies)
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
    const texts = new PassageTexts(this.#passages)
    texts.load(found.map(({ passage }) => passage))
    return found.flatMap(({ source, passage, score }) => {
      const text = texts.get(passage)?.text
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
    return rows.map(toMatch)
  }

  /**
   * Reads the documents of results lazily, since most matches are not used. Returns undefined for a document with the same
   * text as an earlier one, and for a document that another document with the same URL hides.
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

/** The match of a row of {@link ranking}. */
function toMatch({ 0: id, 1: rank }: Record<string, SQLOutputValue>): Match {
  const passage = Number(id)
  // FTS5 ranks the best match lowest.
  return { passage, document: documentOfPassage(passage), score: -Number(rank) }
}
