import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { stem } from './stems.ts'

/** Maximum number of cached terms. */
const MAX_CACHED = 10_000

/** How common terms are. */
export interface TermStatistics {
  /** Number of passages with a word, in any of its forms. */
  of(word: string): number
  /** Whether a passage has these words side by side. */
  hasPhrase(first: string, second: string): boolean
  /**
   * How much a term that so many passages have distinguishes documents: more than 0, and the rarer it is the more. It compares passages
   * with the number of documents, so it is 0.7 or less for a term that as many passages have as there are documents.
   */
  weight(passages: number): number
}

/** Statistics for texts without an index: all terms are equal. */
export const EQUAL_TERMS: TermStatistics = { of: () => 1, hasPhrase: () => false, weight: () => 1 }

/** How many passages of the index have a term. Caches the numbers until the index changes. */
export class Frequencies implements TermStatistics {
  readonly #passages: StatementSync
  readonly #phrase: StatementSync
  readonly #documents: StatementSync
  readonly #cache = new Map<string, number>()
  #size: number | undefined

  constructor(database: DatabaseSync) {
    this.#passages = database.prepare('SELECT doc FROM corpus_vocabulary WHERE term = ?')
    this.#phrase = database.prepare('SELECT 1 FROM corpus_terms WHERE corpus_terms MATCH ? LIMIT 1')
    this.#documents = database.prepare('SELECT count(*) AS documents FROM corpus_files WHERE visible = 1')
  }

  /** Forgets all numbers. */
  reset(): void {
    this.#cache.clear()
    this.#size = undefined
  }

  of(word: string): number {
    return this.#cached(word, () => Number(this.#passages.get(stem(word))?.['doc'] ?? 0))
  }

  hasPhrase(first: string, second: string): boolean {
    const phrase = `${first} ${second}`
    return this.#cached(phrase, () => (this.#phrase.get(`"${phrase}"`) === undefined ? 0 : 1)) > 0
  }

  #cached(key: string, count: () => number): number {
    const known = this.#cache.get(key)
    if (known !== undefined) return known
    const counted = count()
    if (this.#cache.size >= MAX_CACHED) this.#cache.clear()
    this.#cache.set(key, counted)
    return counted
  }

  // The number of documents with the term would fit the number of documents better, but FTS5 counts passages. Compared with the number
  // of passages, fewer documents of the tuning half of `npm run quality` are among the first three.
  weight(passages: number): number {
    this.#size ??= Number(this.#documents.get()?.['documents'])
    return Math.log(1 + (this.#size + 1) / (passages + 1))
  }
}
