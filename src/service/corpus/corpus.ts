import type { SourcePolicy } from '../../protocol/task.ts'
import type { DocumentKind } from './document-kind.ts'

/** The document of a hit or a passage. */
export interface DocumentSource {
  readonly url: string
  readonly title: string
  /** YYYY-MM-DD: the date that the document states, else the day when its file was last modified, as all are in a fresh checkout. */
  readonly publishDate: string | null
  /** Kind of the document, from the name of its file. */
  readonly kind: DocumentKind
}

/** A document of the corpus. */
export interface CorpusDocument extends DocumentSource {
  /** The text; passages are verbatim parts of it. */
  readonly text: string
}

/** A part of a document that matches a query. */
export interface Passage extends DocumentSource {
  /** A verbatim part of the document's text. */
  readonly text: string
  /** Equal for the same text in the same document. */
  readonly hash: string
  /** Relevance, higher is better; comparable within one result list only. */
  readonly score: number
}

/** A document that matches a search, with its best passages. */
export interface DocumentHit extends DocumentSource {
  /** Best first. Verbatim parts of the document's text. */
  readonly excerpts: readonly string[]
  readonly score: number
}

/** A thing that documents are about: a package with its README and its changelog, or a single document. */
export interface CorpusEntity {
  /** The name of the folder, with its scope; the title of a single document. */
  readonly name: string
  /** The URL of its first document. */
  readonly url: string
  /** README, manifest, licence and changelog first, then the others of its folder, then those of nested folders. */
  readonly documents: readonly DocumentSource[]
}

/** A search query. */
export interface CorpusQuery {
  readonly queries: readonly string[]
  readonly objective?: string | undefined
  readonly sourcePolicy?: SourcePolicy | undefined
  /** Maximum number of hits or passages. */
  readonly limit: number
  /**
   * Whether all terms must match. With `any`, the default, one term is enough. With `all`, a passage and its document's title must have all
   * significant terms of a query; the objective is then ignored.
   */
  readonly match?: 'any' | 'all'
  /** Only documents with this title, file name, or name of a parent folder (`rxjs`, `@hono/node-server`); case-insensitive. */
  readonly about?: string | undefined
}

/** Limits of excerpts. */
export interface ExcerptBudget {
  /** Maximum length of all excerpts of one document, in characters. */
  readonly charactersPerResult: number
  /** Maximum length of all excerpts, in characters, divided among the hits. Default: no limit. */
  readonly charactersInTotal?: number | undefined
  /** Maximum number of excerpts of one document. */
  readonly excerptsPerResult: number
}

/** A searchable index of documents. */
export interface Corpus {
  /** Number of documents in the index. */
  readonly size: number
  /** Matching documents, best first; of documents with the same text only the best. */
  search(query: CorpusQuery, budget: ExcerptBudget): DocumentHit[]
  /** Matching passages, best first; if several documents have the same text, only those of one document. */
  passages(query: CorpusQuery): Passage[]
  /**
   * The terms of a query that a search leaves out, since it has too many. With `match: 'any'`, each query and the objective keeps its
   * rarest ones; with `all`, a query with more than 32 terms is left out as a whole.
   */
  unusedTerms(query: Pick<CorpusQuery, 'queries' | 'objective' | 'match'>): readonly string[]
  /** The document with this URL; undefined if the index has none. */
  document(url: string): CorpusDocument | undefined
  /**
   * The subject of the document with this URL: the innermost folder with a README or a manifest, with at most `limit` of its documents, or
   * the document alone; undefined if the index has none.
   */
  entity(url: string, limit: number): CorpusEntity | undefined
  /**
   * The things of this name, at most `limit`, the best first: folders (`undici`, `@hono/node-server`), and documents with this title
   * or file name; case-insensitive. A folder with a README or a manifest comes first, a copy inside another package later.
   */
  named(name: string, limit: number): readonly CorpusEntity[]
  /**
   * Scans the folders, and resolves when every change of a file made before the call is in the index. Before this, it waits for
   * the requests of pages that are due, for 10 s of real time at most: the other pages have the content of their last refresh. Rejects when
   * one of the folders cannot be read; the index then has no change of their files.
   */
  settled(): Promise<void>
  /** Calls the listener after each change of the index. Returns a function that removes it. */
  onChange(listener: () => void): () => void
  /** Stops watching the files. The index remains in the database. */
  close(): Promise<void>
}
