import type { Connection } from '../server/connection.ts'
import { fieldsOf } from './entry-message.ts'
import type { StreamMessage } from '../server/message-cursor.ts'
import { EXPECTED, isNextAt, isOvertaken, WRITE_ID } from '../server/write-order.ts'

/** How many sources are remembered. */
const MAX_SOURCES = 10_000

/** Which entries count, of those that a reader reads in order: see `write-order.ts`. */
export class SourceOrder {
  readonly #connection: Connection
  /** All entries after this number have been seen. */
  #start: number
  /** The last one of each source since then, by subject. */
  readonly #last = new Map<string, number>()

  constructor(connection: Connection, start: number) {
    this.#connection = connection
    this.#start = start
  }

  /** Whether a message counts: mostly known at once. To be called with each one. */
  counts(message: StreamMessage): boolean | Promise<boolean> {
    // A single server has looked at it.
    if (message.field(WRITE_ID) === '') return true
    const { sequence, subject } = message
    const field = (name: string) => message.field(name)
    const before = this.#last.get(subject)
    if (this.#last.size === MAX_SOURCES && before === undefined) {
      this.#last.clear()
      this.#start = sequence - 1
    }
    this.#last.set(subject, sequence)
    if (before !== undefined) return !isOvertaken(field, before)
    const fields = fieldsOf(message)
    // A barrier.
    if (fields === undefined) return true
    const after = Number(field(EXPECTED))
    // Its writer knew everything before; so only what was sent at the same moment can have overtaken it.
    if (after >= this.#start || fields.known >= this.#start) return true
    return isNextAt(this.#connection, this.#connection.names.events, subject, { after, sequence })
  }
}
