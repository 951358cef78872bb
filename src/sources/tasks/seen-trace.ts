/** The most distinct contents that are remembered, about 150 bytes each. */
export const MAX_CONTENTS = 20_000

/**
 * The entries of a run's trace that were emitted. Each connection sends the trace again from its beginning, without ids.
 *
 * An entry is identified by its content and its occurrence in the connection: the second message with equal content is another
 * message, and the same one on the next connection. So the order of a repeated trace does not matter. After
 * {@link MAX_CONTENTS} distinct contents, an entry with another content is identified by its position among these.
 */
export class SeenTrace {
  readonly #contents = new Map<string, SeenContent>()
  readonly #capacity: number
  #connection = 0
  /** Entries of this connection whose content is not remembered, and the most that any connection had. */
  #others = 0
  #mostOthers = 0

  /** @param capacity The most distinct contents. */
  constructor(capacity: number = MAX_CONTENTS) {
    this.#capacity = capacity
  }

  /** Called before each connection. */
  connect(): void {
    this.#connection += 1
    this.#others = 0
  }

  /** Returns the occurrence of this content, from 1; undefined if it was returned on an earlier connection. */
  add(content: string): number | undefined {
    const known = this.#contents.get(content)
    if (known === undefined) return this.#addFirst(content)
    if (known.connection !== this.#connection) {
      known.connection = this.#connection
      known.here = 0
    }
    known.here += 1
    if (known.here <= known.most) return undefined
    known.most = known.here
    return known.here
  }

  /** Like {@link add}, for content that a later connection sends at most once more: beyond the capacity, it is new. */
  addCurrent(content: string): number | undefined {
    return this.#contents.size < this.#capacity || this.#contents.has(content) ? this.add(content) : 1
  }

  #addFirst(content: string): number | undefined {
    if (this.#contents.size < this.#capacity) {
      this.#contents.set(content, { connection: this.#connection, here: 1, most: 1 })
      return 1
    }
    this.#others += 1
    if (this.#others <= this.#mostOthers) return undefined
    this.#mostOthers = this.#others
    return this.#capacity + this.#others
  }
}

interface SeenContent {
  /** The last connection that had it, and its occurrences there. */
  connection: number
  here: number
  /** The most occurrences on one connection. */
  most: number
}
