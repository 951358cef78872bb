import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { Passage } from '../corpus/corpus.ts'
import { statementsOf } from './statements.ts'

const TABLES = `
  CREATE TABLE IF NOT EXISTS monitor_seen (
    monitor_id TEXT NOT NULL REFERENCES monitors (monitor_id),
    url TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (monitor_id, url, hash)
  ) WITHOUT ROWID;
`

/** A passage with something in it that its monitor had not seen before. */
export interface FreshPassage extends Passage {
  /** Whether the monitor had seen other passages of the same document. */
  readonly documentKnown: boolean
}

/** The text of the document at a URL; undefined where there is none. */
export type TextOf = (url: string) => string | undefined

/**
 * Which passages each monitor has seen, and which statements in their documents. These marks are kept for good: what was
 * reported once is not news again.
 */
export class SeenPassages {
  readonly #add
  readonly #has
  readonly #knows

  constructor(database: DatabaseSync) {
    database.exec(TABLES)
    this.#add = database.prepare(
      'INSERT OR IGNORE INTO monitor_seen (monitor_id, url, hash) VALUES (?, ?, ?)',
    )
    this.#has = database.prepare('SELECT 1 FROM monitor_seen WHERE monitor_id = ? AND url = ? AND hash = ?')
    this.#knows = database.prepare('SELECT 1 FROM monitor_seen WHERE monitor_id = ? AND url = ? LIMIT 1')
  }

  /**
   * Marks the passages as seen and gives back those that say something new: a statement that neither the monitor had seen
   * in the document nor an earlier one of these passages has.
   */
  mark(monitorId: string, passages: readonly Passage[], textOf: TextOf): FreshPassage[] {
    const documents = new Map<string, { readonly known: boolean; readonly fresh: Set<string> }>()
    const fresh: FreshPassage[] = []
    for (const passage of passages) {
      const { url, hash, text } = passage
      // Nearly always enough: most passages are as they were the last time.
      if (this.#isSeen(monitorId, url, hash)) continue
      const document = documents.get(url) ?? {
        known: this.#knows.get(monitorId, url) !== undefined,
        fresh: new Set<string>(),
      }
      documents.set(url, document)
      const news = statementsOf(text)
        .map(hashOf)
        .filter((statement) => !document.fresh.has(statement) && !this.#isSeen(monitorId, url, statement))
      if (news.length > 0) fresh.push({ ...passage, documentKnown: document.known })
      for (const statement of news) document.fresh.add(statement)
    }
    // Only now: a mark makes its document known, and its statements old.
    for (const { url, hash } of passages) if (documents.has(url)) this.#add.run(monitorId, url, hash)
    for (const [url, document] of documents) {
      // The whole document: a paragraph that does not match today can share a passage with one that does tomorrow.
      const statements = new Set([...document.fresh, ...statementsOf(textOf(url) ?? '').map(hashOf)])
      for (const statement of statements) this.#add.run(monitorId, url, statement)
    }
    return fresh
  }

  #isSeen(monitorId: string, url: string, hash: string): boolean {
    return this.#has.get(monitorId, url, hash) !== undefined
  }
}

/** Shorter than a passage's, as there are many; chance still makes no two of one document the same. */
function hashOf(statement: string): string {
  return createHash('sha256').update(statement).digest('base64url').slice(0, 22)
}
