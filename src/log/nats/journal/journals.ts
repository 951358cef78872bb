import { setTimeout as delay } from 'node:timers/promises'
import type { Connection } from '../server/connection.ts'
import { Journal } from './journal.ts'
import { decodeMessage } from './journal-message.ts'
import type { JournalHead, JournalMessage } from './journal-message.ts'
import { JOURNAL_LIMITS } from './journal-state.ts'
import type { JournalSettings } from './journal-state.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import type { StreamMessage } from '../server/message-cursor.ts'
import { patiently } from '../server/patience.ts'
import { EXPECTED, isNext, lastMessage } from '../server/succession.ts'
import { LogServerError } from '../../errors.ts'
import { isOfSource } from '../../of-source.ts'

/** How many names are asked for at once. */
const CONCURRENCY = 64

/** How long a message that a server does not have yet is waited for, in ms. */
const LATE_INTERVAL = 20

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

  /** What the last message of a journal says; undefined for none. */
  async head(name: string): Promise<JournalHead | undefined> {
    const { names } = this.#connection
    const last = await lastMessage(this.#connection, names.state, names.journal(name))
    return last && this.#headOf(last.message.data, last.message.seq)
  }

  /** The same of several names. */
  async heads(of: readonly string[]): Promise<readonly (JournalHead | undefined)[]> {
    const heads: (JournalHead | undefined)[] = []
    for (let at = 0; at < of.length; at += CONCURRENCY) {
      heads.push(...(await Promise.all(of.slice(at, at + CONCURRENCY).map((name) => this.head(name)))))
    }
    return heads
  }

  /** What the last message of each journal says, in the order of the names. */
  async all(): Promise<readonly JournalHead[]> {
    const heads: JournalHead[] = []
    const found = await this.#lastMessages()
    for (let at = 0; at < found.length; at += CONCURRENCY) {
      const some = await Promise.all(found.slice(at, at + CONCURRENCY).map((last) => this.#counted(last)))
      heads.push(...some.filter((head) => head !== undefined))
    }
    return heads.toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
  }

  /** Deletes entries of a source from the commits that have appended them, also from the server's files. */
  async forget(source: string): Promise<void> {
    const { names } = this.#connection
    const found = new Set<string>()
    const cursor = new MessageCursor(this.#connection, { stream: names.state, subject: names.allJournals })
    for await (const { data, sequence } of cursor.all()) {
      const { head, commit } = this.#decoded(data, sequence)
      if (commit?.entries.some(({ json }) => isOfSource(json, source)) === true) found.add(head.name)
    }
    for (const name of found) await this.of(name).erase()
  }

  /** The last message of each journal. */
  async #lastMessages(): Promise<readonly StreamMessage[]> {
    const { jsm, names, isReplicated } = this.#connection
    const query = { last_by_subj: names.allJournals }
    for (;;) {
      const last =
        isReplicated && (await patiently(this.#connection, () => jsm.streams.getMessage(names.state, query)))
      const found = new Map<string, StreamMessage>()
      const cursor = new MessageCursor(this.#connection, {
        stream: names.state,
        subject: names.allJournals,
        isLastOnly: true,
      })
      for await (const message of cursor.all()) found.set(message.subject, message)
      if (!last || cursor.last >= last.seq) return [...found.values()]
      // The copy that was asked is behind.
      await delay(LATE_INTERVAL)
    }
  }

  /** What the last message that counts says, by the last one. */
  async #counted(message: StreamMessage): Promise<JournalHead | undefined> {
    const { subject, sequence, data } = message
    const head = this.#headOf(data, sequence)
    const place = { after: Number(message.field(EXPECTED)), sequence }
    const { state } = this.#connection.names
    return (await isNext(this.#connection, state, subject, place)) ? head : this.head(head.name)
  }

  #headOf(data: Uint8Array, sequence: number): JournalHead {
    return this.#decoded(data, sequence).head
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
