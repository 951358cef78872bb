import type { DatabaseSync } from 'node:sqlite'
import type { Passage } from '../corpus/corpus.ts'

const TABLES = `
  CREATE TABLE IF NOT EXISTS monitor_seen (
    monitor_id TEXT NOT NULL REFERENCES monitors (monitor_id),
    url TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (monitor_id, url, hash)
  ) WITHOUT ROWID;
`

/** A passage that its monitor had not seen before. */
export interface FreshPassage extends Passage {
  /** Whether the monitor had seen other passages of the same document. */
  readonly documentKnown: boolean
}

/** Which passages each monitor has seen. These marks are kept for good: what was reported once is not news again. */
export class SeenPassages {
  readonly #mark
  readonly #knows

  constructor(database: DatabaseSync) {
    database.exec(TABLES)
    this.#mark = database.prepare(
      'INSERT OR IGNORE INTO monitor_seen (monitor_id, url, hash) VALUES (?, ?, ?)',
    )
    this.#knows = database.prepare('SELECT 1 FROM monitor_seen WHERE monitor_id = ? AND url = ? LIMIT 1')
  }

  /** Marks the passages as seen and gives back those that were not. */
  mark(monitorId: string, passages: readonly Passage[]): FreshPassage[] {
    // Asked for all documents first: marking one passage of a document makes the document known.
    const known = new Map<string, boolean>()
    for (const { url } of passages) {
      if (!known.has(url)) known.set(url, this.#knows.get(monitorId, url) !== undefined)
    }
    const fresh: FreshPassage[] = []
    for (const passage of passages) {
      const { changes } = this.#mark.run(monitorId, passage.url, passage.hash)
      if (changes > 0) fresh.push({ ...passage, documentKnown: known.get(passage.url) === true })
    }
    return fresh
  }
}
