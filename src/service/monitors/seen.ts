import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { Corpus, Passage } from '../corpus/corpus.ts'
import { readableText, statementsOf } from './statements.ts'

const TABLES = `
  CREATE TABLE IF NOT EXISTS monitor_seen (
    monitor_id TEXT NOT NULL REFERENCES monitors (monitor_id),
    url TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (monitor_id, url, hash)
  ) WITHOUT ROWID;
`

/** A passage with statements that its monitor has not seen before. */
export interface FreshPassage extends Passage {
  /** Whether the monitor has seen other passages of the document. */
  readonly documentKnown: boolean
  /** The new statements. */
  readonly news: readonly string[]
}

/** The new statements in some passages. */
export interface NewStatements {
  /** The passages with a new statement: one that was not seen in the document, and that no earlier one of the passages has. */
  readonly fresh: readonly FreshPassage[]
  /** Marks the passages, and their documents as they were, as seen. */
  mark(): void
}

/** Returns the {@link readableText} of the document at a URL; undefined if there is none. */
export type TextOf = (url: string) => string | undefined

/** The texts of a corpus. */
export function textsOf(corpus: Corpus): TextOf {
  return (url) => {
    const document = corpus.document(url)
    return document === undefined ? undefined : readableText(document)
  }
}

/** The passages and statements that each monitor has seen. They are never removed, so that nothing is reported twice. */
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

  /** Compares passages with the statements that the monitor has seen. */
  compare(monitorId: string, passages: readonly Passage[], textOf: TextOf): NewStatements {
    const documents = new Map<string, { readonly known: boolean; readonly fresh: Set<string> }>()
    const fresh: FreshPassage[] = []
    for (const passage of passages) {
      const { url, hash } = passage
      // A shortcut, since most passages are unchanged.
      if (this.#isSeen(monitorId, url, hash)) continue
      const document = documents.get(url) ?? {
        known: this.#knows.get(monitorId, url) !== undefined,
        fresh: new Set<string>(),
      }
      documents.set(url, document)
      const news = statementsOf(readableText(passage)).filter((statement) => {
        const one = hashOf(statement)
        return !document.fresh.has(one) && !this.#isSeen(monitorId, url, one)
      })
      if (news.length > 0) fresh.push({ ...passage, documentKnown: document.known, news })
      for (const statement of news) document.fresh.add(hashOf(statement))
    }
    const marks: (readonly [url: string, hash: string])[] = passages.flatMap(({ url, hash }) =>
      documents.has(url) ? [[url, hash] as const] : [],
    )
    for (const [url, document] of documents) {
      // Marks the whole document: a paragraph that does not match now may later be in one passage with one that does.
      const statements = new Set([...document.fresh, ...statementsOf(textOf(url) ?? '').map(hashOf)])
      for (const statement of statements) marks.push([url, statement])
    }
    return {
      fresh,
      mark: () => {
        for (const [url, hash] of marks) this.#add.run(monitorId, url, hash)
      },
    }
  }

  #isSeen(monitorId: string, url: string, hash: string): boolean {
    return this.#has.get(monitorId, url, hash) !== undefined
  }
}

/** Shorter than the hash of a passage, since there are many; collisions within a document are still improbable. */
function hashOf(statement: string): string {
  return createHash('sha256').update(statement).digest('base64url').slice(0, 22)
}
