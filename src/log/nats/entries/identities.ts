import { identityKey } from '../../store/identity-key.ts'
import type { MessageTimes } from './entry-message.ts'
import type { EntryIdentity } from '../../store/new-entry.ts'
import { publishBarrier } from './barrier.ts'
import type { Connection } from '../server/connection.ts'
import { CopiedIdentities } from './copied-identities.ts'
import { deletedIdentities } from './deleted-identities.ts'
import { fieldsOf } from './entry-message.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { hashOf } from '../server/names.ts'
import { isOvertaken, writeIdOf } from '../server/write-order.ts'

/** The latest revision of an identity. */
export interface KnownRevision {
  readonly revision: number
  readonly completeness: number
  /** The number of its latest revision; undefined once it was deleted. */
  readonly sequence: number | undefined
}

/** The identities of a source, by their keys. */
export class SourceIdentities {
  readonly known = new Map<string, KnownRevision>()
  /** The number of the last message of the source; 0 for none. */
  last = 0
  /** The number up to which it was read. */
  read = 0
  /** The number up to which the identities of its deleted entries were read. */
  deletedRead = 0
  /** The count of these identities when they were used last. */
  counted = 0

  /** Notes an identity, unless a later revision of it is known. */
  note(key: string, known: KnownRevision): void {
    const earlier = this.known.get(key)
    if (earlier === undefined || earlier.revision < known.revision) this.known.set(key, known)
  }
}

/** How many identities are kept in memory, about. */
const MAX_KEPT = 1_000_000

/**
 * The identities of the sources that are appended to. Those of a source are read once, and then only what others have written, when a
 * write is refused because of that. They are hints: whether something may be written is decided by the server.
 */
export class NatsIdentities {
  readonly #connection: Connection
  /** Sources in the order of their last use. */
  readonly #sources = new Map<string, SourceIdentities>()
  /** Number of their identities, about. */
  #kept = 0
  /** The forgotten revisions by their keys, and the number up to which they were read. */
  readonly #forgotten = new Map<string, number>()
  #forgottenRead = 0
  /** Identities from the other log, if this one is a copy. */
  readonly #copied: CopiedIdentities | undefined

  /** @param hasCopied Whether it has identities of another log. */
  constructor(connection: Connection, hasCopied = false) {
    this.#connection = connection
    this.#copied = hasCopied ? new CopiedIdentities(connection) : undefined
  }

  /** The identities of a source. */
  async of(source: string): Promise<SourceIdentities> {
    const found = this.#sources.get(source)
    if (found !== undefined) {
      this.#sources.delete(source)
      this.#sources.set(source, found)
      this.#limit(found)
      return found
    }
    const identities = new SourceIdentities()
    await this.refresh(source, identities)
    this.#sources.set(source, identities)
    this.#limit(identities)
    return identities
  }

  /**
   * Reads the entries that were written to a source since, and the identities of those that were deleted.
   *
   * @returns The unique ids of the messages that were read, with their numbers.
   */
  async refresh(source: string, identities: SourceIdentities): Promise<ReadonlyMap<string, number>> {
    const { jsm, names } = this.#connection
    const subject = names.entries(source)
    const written = new Map<string, number>()
    const found = await jsm.streams.getMessage(names.events, { last_by_subj: subject })
    let { last, read } = identities
    if (found !== null && found.seq > read) {
      const cursor = new MessageCursor(this.#connection, {
        stream: names.events,
        subject,
        after: read,
        fieldsOnly: true,
      })
      for await (const message of cursor.all()) {
        const { sequence } = message
        const fields = fieldsOf(message)
        const counts = !isOvertaken((name) => message.field(name), last)
        last = sequence
        read = sequence
        if (fields === undefined || !counts) continue
        const { id, revision, completeness } = fields
        identities.note(id, { revision, completeness, sequence })
        written.set(
          writeIdOf((name) => message.field(name)),
          sequence,
        )
      }
    }
    // What was read may be deleted: what comes before it is the last message then.
    if (read === identities.read) last = Math.min(found?.seq ?? 0, read)
    // After the entries: what is deleted meanwhile was stored there before.
    await this.#refreshDeleted(source, identities)
    // At the end: if this fails, a writer that goes on is refused, and reads again.
    identities.last = last
    identities.read = read
    return written
  }

  /**
   * Begins a source that has no message, before it gets an entry. That it has none is no condition for a write, since it may hold again:
   * others append, and retention deletes what they have appended. So a barrier comes first, and the entry has to follow it.
   *
   * @returns The number of the barrier; undefined if others have written to the source, which then has a message. What they have written is
   * known afterwards.
   */
  async begin(
    source: string,
    identities: SourceIdentities,
    times: MessageTimes,
  ): Promise<number | undefined> {
    const { jsm, names } = this.#connection
    const subject = names.entries(source)
    const sequence = await publishBarrier(this.#connection, subject, 0, times)
    const query = { seq: identities.read + 1, next_by_subj: subject }
    const first = await jsm.streams.getMessage(names.events, query)
    if (sequence === undefined || first?.seq !== sequence) {
      await this.refresh(source, identities)
      return sequence
    }
    // What others have appended before it is deleted already.
    await this.#refreshDeleted(source, identities)
    identities.last = sequence
    identities.read = sequence
    return sequence
  }

  /** Adds what is known of these entries from another log, of which this one is a copy. */
  async addCopied(identities: SourceIdentities, entries: readonly EntryIdentity[]): Promise<void> {
    if (this.#copied === undefined) return
    for (const entry of entries) {
      const key = identityKey(entry)
      const copied = identities.known.has(key) ? undefined : await this.#copied.find(key)
      if (copied === undefined) continue
      const [, revision, completeness] = copied
      identities.note(key, { revision, completeness, sequence: undefined })
    }
  }

  /** Reads the identities that were forgotten since. */
  async refreshForgotten(): Promise<void> {
    const { names } = this.#connection
    const subject = names.allForgotten
    const cursor = new MessageCursor(this.#connection, {
      stream: names.state,
      subject,
      after: this.#forgottenRead,
    })
    for await (const { data } of cursor.all()) {
      for (const [key, revision] of deletedIdentities(data)) this.#forgotten.set(key, revision)
    }
    this.#forgottenRead = cursor.last
  }

  /** Whether the entry was forgotten, and not appended again since, as {@link refreshForgotten} has found. */
  async isForgotten(identity: EntryIdentity): Promise<boolean> {
    const key = identityKey(identity)
    const revision = this.#forgotten.get(key)
    if (revision === undefined) return false
    const { known } = await this.of(identity.source)
    return (known.get(key)?.revision ?? 0) <= revision
  }

  async #refreshDeleted(source: string, identities: SourceIdentities): Promise<void> {
    const { jsm, names } = this.#connection
    const subject = names.identities(hashOf(source))
    const after = identities.deletedRead
    // Mostly there is nothing new.
    const last = await jsm.streams.getMessage(names.state, { last_by_subj: subject })
    if (last === null || last.seq <= after) return
    const cursor = new MessageCursor(this.#connection, { stream: names.state, subject, after })
    for await (const { data } of cursor.all()) {
      for (const [id, revision, completeness] of deletedIdentities(data)) {
        identities.note(id, { revision, completeness, sequence: undefined })
      }
    }
    identities.deletedRead = cursor.last
  }

  /** Drops the least recently used sources. The count of a source that has grown is corrected when it is used again: there may be a million. */
  #limit(used: SourceIdentities): void {
    const size = used.known.size + 10
    this.#kept += size - used.counted
    used.counted = size
    for (const [source, { counted }] of this.#sources) {
      if (this.#kept <= MAX_KEPT || this.#sources.size === 1) return
      this.#sources.delete(source)
      this.#kept -= counted
    }
  }
}
