import type { SourcePolicy } from '../../protocol/task.ts'

/** A document of the corpus. */
export interface CorpusDocument {
  readonly url: string
  readonly title: string
  /** YYYY-MM-DD: the date that it states, else the day on which its file was last written. */
  readonly publishDate: string | null
  /** The text that passages are taken from, word for word. */
  readonly text: string
}

/** A stretch of a document that fits a query. */
export interface Passage {
  readonly url: string
  readonly title: string
  readonly publishDate: string | null
  /** Stands word for word in the document's text. */
  readonly text: string
  /** The same for the same words in the same document. */
  readonly hash: string
  /** Relevance, higher is better; comparable within one answer only. */
  readonly score: number
}

/** A document that fits a search, with its best passages. */
export interface DocumentHit {
  readonly url: string
  readonly title: string
  readonly publishDate: string | null
  /** Best first. Each stands word for word in the document's text. */
  readonly excerpts: readonly string[]
  readonly score: number
}

/** What to look for. */
export interface CorpusQuery {
  readonly queries: readonly string[]
  readonly objective?: string | undefined
  readonly sourcePolicy?: SourcePolicy | undefined
  /** Hits or passages at the most. */
  readonly limit: number
  /**
   * Whether one term is enough (`any`, the default) or a passage must have, together with its document's title, all
   * significant terms of a query (`all`; the objective then finds nothing by itself).
   */
  readonly match?: 'any' | 'all'
  /**
   * Only documents that bear this name: as their title, as their file's name, or as that of a folder which they are in
   * (`rxjs`, `@hono/node-server`). Case does not matter.
   */
  readonly about?: string | undefined
}

/** How long the excerpts of hits may be. */
export interface ExcerptBudget {
  /** Characters of all excerpts of one document, at the most. */
  readonly charactersPerResult: number
  /** Characters of the excerpts of all hits, at the most; each hit gets its share. Default: no limit. */
  readonly charactersInTotal?: number | undefined
  /** Excerpts of one document, at the most. */
  readonly excerptsPerResult: number
}

/** The documents, searchable. Answers come from what is indexed right now. */
export interface Corpus {
  /** Documents in the index. */
  readonly size: number
  /** Documents that fit, best first, each once; of documents with the same text only the best. */
  search(query: CorpusQuery, budget: ExcerptBudget): DocumentHit[]
  /** Passages that fit, best first; of documents with the same text only one's. */
  passages(query: CorpusQuery): Passage[]
  document(url: string): CorpusDocument | undefined
  /**
   * Looks through the folders, and resolves when every change made before the call is in the index. Rejects when one of
   * the folders themselves cannot be read; the index then stays as it was.
   */
  settled(): Promise<void>
  /** Calls the listener after the index has changed, until the function that it returns is called. */
  onChange(listener: () => void): () => void
  /** Stops watching the files. The index stays in the database. */
  close(): Promise<void>
}
