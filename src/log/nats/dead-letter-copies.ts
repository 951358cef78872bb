import { headers } from '@nats-io/transport-node'
import type { Entry, Position } from '../store/contract.ts'
import { isOfSource } from '../of-source.ts'
import type { Connection } from './connection.ts'
import { MessageCursor } from './message-cursor.ts'
import { patiently } from './patience.ts'

/** How many copies are removed at once. */
const CONCURRENCY = 32

/** A copy of an entry. */
export interface DeadLetterCopy {
  readonly subject: string
  readonly position: Position
}

/**
 * Copies of the entries that readers could not handle, each a message of its own: the log may delete the entry, and a journal
 * with the entries would be long. A copy is stored before the commit that has its letter, and without effect until then.
 */
export class DeadLetterCopies {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** The subject of a copy. */
  subject(reader: string, position: Position): string {
    return this.#connection.names.deadLetter(reader, position)
  }

  /** Stores a copy, in the place of an earlier one. */
  async store(reader: string, entry: Entry, position: Position): Promise<void> {
    const { js } = this.#connection
    const fields = headers()
    fields.set('Nats-Rollup', 'sub')
    const subject = this.subject(reader, position)
    await patiently(this.#connection, () => js.publish(subject, JSON.stringify(entry), { headers: fields }))
  }

  /** The entry of a letter, as JSON; undefined where it was removed meanwhile. */
  async read(reader: string, position: Position): Promise<string | undefined> {
    const { jsm, names } = this.#connection
    const query = { last_by_subj: names.deadLetter(reader, position) }
    const found = await patiently(this.#connection, () => jsm.streams.getMessage(names.state, query))
    return found === null ? undefined : found.string()
  }

  /** Removes copies of letters that were there until the message with this number. Copies after it stay. */
  async remove(reader: string, positions: readonly Position[], sequence: number): Promise<void> {
    await this.#purge(
      positions.map((position) => this.subject(reader, position)),
      sequence,
    )
  }

  /** The copies of entries of a source, also those that belong to no letter. */
  async ofSource(source: string): Promise<readonly DeadLetterCopy[]> {
    const { names } = this.#connection
    const found: DeadLetterCopy[] = []
    const cursor = new MessageCursor(this.#connection, { stream: names.state, subject: names.allDeadLetters })
    try {
      for await (const { subject, data } of cursor.all()) {
        const json = new TextDecoder().decode(data)
        if (!isOfSource(json, source)) continue
        const { position }: Entry = JSON.parse(json)
        found.push({ subject, position })
      }
    } finally {
      cursor.close()
    }
    return found
  }

  /** Removes copies, whenever they were stored. */
  async removeAll(copies: readonly DeadLetterCopy[]): Promise<void> {
    await this.#purge(copies.map(({ subject }) => subject))
  }

  async #purge(subjects: readonly string[], before?: number): Promise<void> {
    const { jsm, names } = this.#connection
    for (let at = 0; at < subjects.length; at += CONCURRENCY) {
      await Promise.all(
        subjects
          .slice(at, at + CONCURRENCY)
          .map((filter) =>
            patiently(this.#connection, () =>
              jsm.streams.purge(names.state, { filter, ...(before !== undefined && { seq: before }) }),
            ),
          ),
      )
    }
  }
}
