import type { StatementSync } from 'node:sqlite'
import type { StoredPassage } from './excerpts.ts'

/** SQL for {@link PassageTexts}, prepared with rows as arrays. */
export const PASSAGES_BY_IDS =
  'SELECT id, text, gap FROM corpus_passages WHERE id IN (SELECT value FROM json_each(?))'

/** The texts of passages that a search has read, each of them once. */
export class PassageTexts {
  readonly #statement: StatementSync
  readonly #passages = new Map<number, StoredPassage>()

  /** `statement` is {@link PASSAGES_BY_IDS}. */
  constructor(statement: StatementSync) {
    this.#statement = statement
  }

  /** Reads the passages with these ids that exist, unless they were read. */
  load(ids: readonly number[]): void {
    const missing = ids.filter((id) => !this.#passages.has(id))
    if (missing.length === 0) return
    for (const { 0: id, 1: text, 2: gap } of this.#statement.all(JSON.stringify(missing))) {
      this.#passages.set(Number(id), { text: String(text), gap: String(gap) })
    }
  }

  /** The passage, if it was read and exists. */
  get(id: number): StoredPassage | undefined {
    return this.#passages.get(id)
  }
}
