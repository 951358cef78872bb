import type { Connection } from './connection.ts'
import { eraseMessage } from './erase-message.ts'

/** Size that a message keeps free for its fields, in bytes. */
const ROOM_FOR_FIELDS = 32 * 1024

/** The field of a message that names its chunks: the numbers of the messages that have them. */
export const PARTS = 'Rv-Parts'

/** The field of the size of a text in chunks, in bytes. */
export const SIZE = 'Rv-Size'

/** The payload of a message, and the fields that belong to it. */
export interface Payload {
  readonly payload: Uint8Array
  readonly fields: Readonly<Record<string, string>>
}

/** A message whose text is in it, or in chunks. */
interface MessageWithText {
  readonly data: Uint8Array
  field(name: string): string
}

const decoder = new TextDecoder()

/** Payloads of any length: a text that is too long for a message is stored in chunks before it, which belong to it once it is stored. */
export class ChunkedPayloads {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Prepares a text for its message. @param token The last token of the message's subject. */
  prepare(token: string, text: string): Promise<Payload> {
    return this.prepareAt(this.#connection.names.parts(token), text)
  }

  /** Prepares a text for its message. @param subject The subject of the chunks. */
  async prepareAt(subject: string, text: string): Promise<Payload> {
    const bytes = new TextEncoder().encode(text)
    const size = this.#connection.maxPayload - ROOM_FOR_FIELDS
    if (bytes.length <= size) return { payload: bytes, fields: {} }
    const { publisher } = this.#connection
    const parts: number[] = []
    for (let from = 0; from < bytes.length; from += size) {
      const { sequence } = await publisher.publish({ subject, payload: bytes.subarray(from, from + size) })
      parts.push(sequence)
    }
    return { payload: new Uint8Array(0), fields: { [PARTS]: parts.join(), [SIZE]: String(bytes.length) } }
  }

  /** The text of a message that has it as a whole; undefined for one in chunks. */
  whole(message: MessageWithText): string | undefined {
    const isWhole = message.data.length > 0 || message.field(PARTS) === ''
    return isWhole ? decoder.decode(message.data) : undefined
  }

  /** The text of a message; undefined if its chunks were deleted. */
  async read(message: MessageWithText): Promise<string | undefined> {
    const parts = partsOf(message.field(PARTS))
    if (parts.length === 0) return this.whole(message)
    const { jsm, names } = this.#connection
    const bytes: Uint8Array[] = []
    for (const seq of parts) {
      const part = await jsm.streams.getMessage(names.state, { seq })
      if (part === null) return undefined
      bytes.push(part.data)
    }
    return decoder.decode(Buffer.concat(bytes))
  }

  /** Deletes the chunks of a text whose message is deleted, and older chunks that belong to no message. */
  async remove(token: string, field: string): Promise<void> {
    const last = partsOf(field).at(-1)
    if (last === undefined) return
    const { jsm, names } = this.#connection
    await jsm.streams.purge(names.state, { filter: names.parts(token), seq: last + 1 })
  }

  /** Deletes the chunks of a text, also in the server's files. */
  async erase(field: string): Promise<void> {
    const { names } = this.#connection
    for (const sequence of partsOf(field)) await eraseMessage(this.#connection, names.state, sequence)
  }
}

function partsOf(field: string): readonly number[] {
  return field === '' ? [] : field.split(',').map(Number)
}
