import type { Connection } from '../server/connection.ts'
import { Journal } from './journal.ts'
import { decodeMessage } from './journal-message.ts'
import type { JournalHead, JournalMessage } from './journal-message.ts'
import { JOURNAL_LIMITS } from './journal-state.ts'
import type { JournalSettings } from './journal-state.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { retryTransient } from '../server/retry-transient.ts'
import { lastMessage } from '../server/write-order.ts'
import { LogServerError } from '../../errors.ts'
import { isOfSource } from '../../state/of-source.ts'

/** Maximum number of names that are requested at once, and that a list has at once. */
const CONCURRENCY = 64
const LISTED = 1_000

/** The journals of all claimed names: those that are in use, and the last message of any. */
export class Journals {
  readonly #connection: Connection
  readonly #settings: JournalSettings
  readonly #journals = new Map<string, Journal>()
  #swept = performance.now()

  constructor(connection: Connection, settings: JournalSettings) {
    this.#connection = connection
    this.#settings = settings
  }

  /** The log in errors. */
  get log(): string {
    return this.#settings.log
  }

  /** The journal of a name, which is followed from now on. */
  of(name: string): Journal {
    this.#sweep()
    const journal = this.#journals.get(name) ?? new Journal(this.#connection, name, this.#settings)
    this.#journals.set(name, journal)
    return journal
  }

  /** The head of a journal, from its last message; undefined for none. */
  head(name: string): Promise<JournalHead | undefined> {
    return this.#headAt(this.#connection.names.journal(name))
  }

  /** The heads of several journals. */
  heads(of: readonly string[]): Promise<readonly (JournalHead | undefined)[]> {
    return this.#headsAt(of.map((name) => this.#connection.names.journal(name)))
  }

  /** The heads of all journals that a reader may have, in the order of the names. */
  async ofReaders(): Promise<readonly JournalHead[]> {
    return inOrder(await this.#headsAt(await this.#subjects(this.#connection.names.readerJournals)))
  }

  /** The heads of all journals. */
  async all(): Promise<readonly JournalHead[]> {
    const { names, isReplicated } = this.#connection
    // A copy of the stream may be behind its leader.
    const streams = isReplicated ? new Map() : await this.#listed(names.streamJournals)
    const rest = (await this.#subjects(names.streamJournals)).filter((subject) => !streams.has(subject))
    return inOrder([...(await this.ofReaders()), ...streams.values(), ...(await this.#headsAt(rest))])
  }

  /** Deletes entries of a source from the commits that have appended them, also from the server's files. */
  async forget(source: string): Promise<void> {
    const { names } = this.#connection
    const found = new Set<string>()
    const cursor = new MessageCursor(this.#connection, { stream: names.state, subject: names.readerJournals })
    for await (const { data, sequence } of cursor.all()) {
      const { head, commit } = this.#decoded(data, sequence)
      if (commit?.entries.some(({ json }) => isOfSource(json, source)) === true) found.add(head.name)
    }
    for (const name of found) await this.of(name).erase()
  }

  /** The subjects of journals that there are. */
  async #subjects(filter: string): Promise<readonly string[]> {
    const { jsm, names } = this.#connection
    const options = { subjects_filter: filter }
    const { state } = await retryTransient(this.#connection, () => jsm.streams.info(names.state, options))
    return Object.keys(state.subjects ?? {})
  }

  /** Heads by subject, from a list of last messages. It takes a fifth of the time of single reads, and may not have all. */
  async #listed(filter: string): Promise<ReadonlyMap<string, JournalHead>> {
    const heads = new Map<string, JournalHead>()
    const { state: stream } = this.#connection.names
    const cursor = new MessageCursor(this.#connection, { stream, subject: filter, isLastOnly: true })
    for (let isEnd = false; !isEnd;) {
      isEnd = await cursor.pull(LISTED)
      for (const { subject, data, sequence } of cursor.messages) {
        heads.set(subject, this.#decoded(data, sequence).head)
      }
    }
    cursor.close()
    return heads
  }

  async #headAt(subject: string): Promise<JournalHead | undefined> {
    const last = await lastMessage(this.#connection, this.#connection.names.state, subject)
    return last && this.#decoded(last.message.data, last.message.seq).head
  }

  async #headsAt(subjects: readonly string[]): Promise<readonly (JournalHead | undefined)[]> {
    const heads: (JournalHead | undefined)[] = []
    for (let at = 0; at < subjects.length; at += CONCURRENCY) {
      const some = subjects.slice(at, at + CONCURRENCY)
      heads.push(...(await Promise.all(some.map((subject) => this.#headAt(subject)))))
    }
    return heads
  }

  #decoded(data: Uint8Array, sequence: number): JournalMessage {
    try {
      return decodeMessage(data, sequence)
    } catch (cause) {
      throw new LogServerError(this.log, `has a damaged journal at ${sequence}`, { cause })
    }
  }

  #sweep(): void {
    const now = performance.now()
    const { idle } = this.#settings.limits ?? JOURNAL_LIMITS
    if (now - this.#swept < idle / 2) return
    this.#swept = now
    for (const [name, { used }] of this.#journals) if (used < now - idle) this.#journals.delete(name)
  }
}

/** Sorts heads in the order of the names. */
function inOrder(heads: readonly (JournalHead | undefined)[]): readonly JournalHead[] {
  return heads
    .filter((head) => head !== undefined)
    .toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
}
