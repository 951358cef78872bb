import type { Entry, Position } from '../../store/contract.ts'
import { isOfSource } from '../../state/of-source.ts'
import type { Connection } from '../server/connection.ts'
import { eraseMessage } from '../server/erase-message.ts'
import { PARTS } from '../server/chunked-payloads.ts'
import type { ChunkedPayloads } from '../server/chunked-payloads.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { retryTransient } from '../server/retry-transient.ts'
import { ROLLUP } from '../server/publisher.ts'

/** How many copies are removed at once. */
const CONCURRENCY = 32

/** A copy of an entry. */
export interface DeadLetterCopy {
  readonly subject: string
  readonly position: Position
  /** The number of its message, and the field that names its chunks. */
  readonly sequence: number
  readonly parts: string
}

/**
 * Copies of the entries that readers could not handle, each a message of its own: the log may delete the entry, and a journal
 * with the entries would be long. A copy is stored before the commit that has its dead letter, and without effect until then.
 */
export class DeadLetterCopies {
  readonly #connection: Connection
  readonly #payloads: ChunkedPayloads

  constructor(connection: Connection, payloads: ChunkedPayloads) {
    this.#connection = connection
    this.#payloads = payloads
  }

  /** The subject of a copy. */
  subject(reader: string, position: Position): string {
    return this.#connection.names.deadLetter(reader, position)
  }

  /** Stores a copy, in the place of an earlier one. */
  async store(reader: string, entry: Entry, position: Position): Promise<void> {
    const { publisher } = this.#connection
    const subject = this.subject(reader, position)
    const json = JSON.stringify(entry)
    await retryTransient(this.#connection, async () => {
      const { payload, fields } = await this.#payloads.prepareAt(subject, json)
      // Its own chunks are before it.
      const isRollup = fields[PARTS] === undefined
      await publisher.publish({
        subject,
        payload,
        fields: isRollup ? { ...fields, [ROLLUP]: 'sub' } : fields,
      })
    })
  }

  /** The entry of a dead letter, as JSON; undefined if it was removed meanwhile. */
  async read(reader: string, position: Position): Promise<string | undefined> {
    const { jsm, names } = this.#connection
    const query = { last_by_subj: names.deadLetter(reader, position) }
    return retryTransient(this.#connection, async () => {
      const found = await jsm.streams.getMessage(names.state, query)
      if (found === null) return undefined
      return this.#payloads.read({ data: found.data, field: (name) => found.header.get(name) })
    })
  }

  /** Removes copies of dead letters that were there until the message with this number. Copies after it stay. */
  async remove(reader: string, positions: readonly Position[], sequence: number): Promise<void> {
    await this.#purge(
      positions.map((position) => this.subject(reader, position)),
      sequence,
    )
  }

  /** The copies of entries of a source, also those that belong to no dead letter. */
  async ofSource(source: string): Promise<readonly DeadLetterCopy[]> {
    const { names } = this.#connection
    const found: DeadLetterCopy[] = []
    const cursor = new MessageCursor(this.#connection, { stream: names.state, subject: names.allDeadLetters })
    for await (const message of cursor.all()) {
      const { subject, sequence } = message
      // A chunk of a long text is no JSON.
      const json = await retryTransient(this.#connection, () => this.#payloads.read(message))
      if (json === undefined || !isOfSource(json, source)) continue
      const { position }: Entry = JSON.parse(json)
      found.push({ subject, position, sequence, parts: message.field(PARTS) })
    }
    return found
  }

  /** Removes copies, also from the server's files. */
  async erase(copies: readonly DeadLetterCopy[]): Promise<void> {
    const { names } = this.#connection
    for (const { sequence, parts } of copies) {
      await this.#payloads.erase(parts)
      await eraseMessage(this.#connection, names.state, sequence)
    }
  }

  async #purge(subjects: readonly string[], before: number): Promise<void> {
    const { jsm, names } = this.#connection
    for (let at = 0; at < subjects.length; at += CONCURRENCY) {
      await Promise.all(
        subjects
          .slice(at, at + CONCURRENCY)
          .map((filter) =>
            retryTransient(this.#connection, () => jsm.streams.purge(names.state, { filter, seq: before })),
          ),
      )
    }
  }
}
