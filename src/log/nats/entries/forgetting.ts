import { isOfSource } from '../../state/of-source.ts'
import type { LogMetadata } from '../server/log-metadata.ts'
import type { Connection } from '../server/connection.ts'
import { publishBarrier } from './barrier.ts'
import { storeIdentities } from './deleted-identities.ts'
import type { DeletedIdentity } from './deleted-identities.ts'
import { fieldsOf, tokenOf } from './entry-message.ts'
import type { RecordedTimes } from './recorded-times.ts'
import { PARTS } from '../server/chunked-payloads.ts'
import type { ChunkedPayloads } from '../server/chunked-payloads.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { retryTransient } from '../server/retry-transient.ts'

/** How many entries are read, and how many are deleted, at once. */
const STEP = 500
const CONCURRENCY = 32

/**
 * Number of passes over the entries. Before an entry is deleted, a process may append because of it, and another process because of
 * that output: each pass finds one more process of such a chain. A log allows 16 of them.
 */
const MAX_PASSES = 18

/** An entry to be deleted. */
interface Found {
  readonly sequence: number
  readonly subject: string
  readonly source: string
  readonly identity: DeletedIdentity
  readonly parts: string
}

/** Deletes the entries of a source, also their text in the server's files. */
export class Forgetting {
  readonly #connection: Connection
  readonly #about: LogMetadata
  readonly #payloads: ChunkedPayloads
  readonly #times: RecordedTimes

  constructor(connection: Connection, about: LogMetadata, payloads: ChunkedPayloads, times: RecordedTimes) {
    this.#connection = connection
    this.#about = about
    this.#payloads = payloads
    this.#times = times
  }

  /** Resolves with the number of deleted entries. */
  async forget(source: string): Promise<number> {
    let count = 0
    let after = 0
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const { found, last } = await this.#pass(source, after)
      count += found
      after = last
      // From now on, nothing can be appended because of a deleted entry.
      if (found === 0) break
    }
    return count
  }

  /** Makes one pass over the present entries. Entries that are appended meanwhile are left to the next pass, or it would not end. */
  async #pass(source: string, after: number): Promise<{ readonly found: number; readonly last: number }> {
    const { jsm, names } = this.#connection
    const { state } = await retryTransient(this.#connection, () => jsm.streams.info(names.events))
    const last = state.last_seq
    const cursor = new MessageCursor(this.#connection, { stream: names.events, after })
    // As `JSON.stringify` has written it. So most events are not parsed.
    const part = JSON.stringify(source)
    let count = 0
    let found: Found[] = []
    for await (const message of cursor.all(STEP)) {
      if (message.sequence > last) break
      const json = await this.#payloads.read(message)
      const fields = fieldsOf(message)
      if (fields === undefined || json?.includes(part) !== true || !isOfSource(json, source)) continue
      const { id, revision, completeness } = fields
      found.push({
        sequence: message.sequence,
        subject: message.subject,
        source: tokenOf(message.subject),
        identity: [id, revision, completeness, message.sequence],
        parts: message.field(PARTS),
      })
      count += 1
      if (found.length < STEP) continue
      await this.#delete(found)
      found = []
    }
    await this.#delete(found)
    return { found: count, last }
  }

  async #delete(found: readonly Found[]): Promise<void> {
    if (found.length === 0) return
    const { jsm, names } = this.#connection
    // First of all, so that output of processes because of these entries is no longer appended.
    await storeIdentities(this.#connection, (token) => names.forgotten(token), found, this.#about.current)
    await storeIdentities(this.#connection, (token) => names.identities(token), found, this.#about.current)
    await this.#publishBarriers(found)
    for (let at = 0; at < found.length; at += CONCURRENCY) {
      await Promise.all(
        found.slice(at, at + CONCURRENCY).map(async ({ sequence, parts }) => {
          await this.#payloads.erase(parts)
          await retryTransient(this.#connection, async () => {
            // A repeated deletion finds nothing.
            const query = { seq: sequence }
            if ((await jsm.streams.getMessage(names.events, query)) === null) return
            await jsm.streams.deleteMessage(names.events, sequence, true)
          })
        }),
      )
    }
  }

  /**
   * Publishes a barrier for each source whose last entry is deleted: if an earlier one stays, that would be the last one again, and a
   * writer that has known it as such would append what is forgotten.
   */
  async #publishBarriers(found: readonly Found[]): Promise<void> {
    const { jsm, names } = this.#connection
    const deleted = new Set(found.map(({ sequence }) => sequence))
    const times = await retryTransient(this.#connection, () => this.#times.next())
    for (const subject of new Set(found.map((each) => each.subject))) {
      await retryTransient(this.#connection, async () => {
        const last = await jsm.streams.getMessage(names.events, { last_by_subj: subject })
        if (last !== null && deleted.has(last.seq))
          await publishBarrier(this.#connection, subject, last.seq, times)
      })
    }
  }
}
