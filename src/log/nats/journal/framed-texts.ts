/**
 * Texts behind a head, in one payload: a line of JSON, then the texts one after the other. Within the JSON each would be
 * escaped, and become up to six times as long as it is.
 */
export class TextWriter {
  readonly #texts: Uint8Array[] = []
  readonly #lengths: number[] = []
  /** The size of the texts so far, in bytes. */
  bytes = 0

  add(text: string): void {
    const isUtf8 = text.isWellFormed()
    // UTF-8 has no lone surrogates.
    const bytes = Buffer.from(text, isUtf8 ? 'utf8' : 'utf16le')
    this.#texts.push(bytes)
    this.#lengths.push(2 * bytes.length + (isUtf8 ? 0 : 1))
    this.bytes += bytes.length
  }

  /** The payload. The head is read again as JSON. */
  payload(head: object): Uint8Array {
    const line = Buffer.from(`${JSON.stringify([head, this.#lengths])}\n`)
    return Buffer.concat([line, ...this.#texts])
  }
}

/** Reads texts in the order in which they were added. */
export class TextReader {
  /** The head, as JSON. */
  readonly head: unknown
  readonly #bytes: Buffer
  readonly #lengths: readonly unknown[]
  #next = 0
  #at: number

  /** Throws a SyntaxError for a payload that is damaged. */
  constructor(payload: Uint8Array) {
    const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
    const end = bytes.indexOf(10)
    const parsed: unknown = JSON.parse(bytes.toString('utf8', 0, Math.max(0, end)))
    if (!Array.isArray(parsed) || !Array.isArray(parsed[1])) throw new SyntaxError('it has no head')
    this.head = parsed[0]
    this.#lengths = parsed[1]
    this.#bytes = bytes
    this.#at = end + 1
  }

  /** Throws a SyntaxError if there is no other text. */
  next(): string {
    const length = this.#lengths[this.#next]
    if (typeof length !== 'number') throw new SyntaxError('a text is missing')
    const end = this.#at + Math.floor(length / 2)
    if (!(end <= this.#bytes.length)) throw new SyntaxError('a text is cut')
    const text = this.#bytes.toString(length % 2 === 0 ? 'utf8' : 'utf16le', this.#at, end)
    this.#next += 1
    this.#at = end
    return text
  }
}
