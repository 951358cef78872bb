import type { Position } from '../store/contract.ts'
import type { AckWindow } from './ack-window.ts'

/** Maximum length of the entries in flight as JSON, in characters. Reading pauses at it. */
const MAX_OUT_LENGTH = 16 * 1024 * 1024

/** A reader whose entries count. */
interface LimitedReader {
  /** Undefined until it has begun. */
  readonly window: AckWindow | undefined
}

/** A permit for a number of entries that are being read. */
export interface Permit {
  readonly count: number
  /** Gives it back once the entries were read. */
  release(): void
}

/** Limits the entries of one consumer that are in flight, over all its readers, which take turns. */
export class InFlightLimit<Reader extends LimitedReader = LimitedReader> {
  readonly #max: number
  readonly #page: number
  readonly #onFull: (unacknowledged: number) => void
  readonly #readers = new Set<Reader>()
  /** Entries that are being read. */
  #reserved = 0
  /** Readers that wait for a permit. They come in this order, so that all of them stay near each other in the log. */
  readonly #waiting = new Set<(permit: Permit) => void>()

  /**
   * @param max Maximum number of entries that are not acknowledged.
   * @param page Maximum number of entries that are read at once.
   * @param onFull Called with the number of entries that are not acknowledged if readers wait for that.
   */
  constructor(max: number, page: number, onFull: (unacknowledged: number) => void) {
    this.#max = max
    this.#page = Math.min(max, page)
    this.#onFull = onFull
  }

  /** The number of readers. */
  get size(): number {
    return this.#readers.size
  }

  add(reader: Reader): void {
    this.#readers.add(reader)
  }

  delete(reader: Reader): void {
    this.#readers.delete(reader)
    this.next()
  }

  /** Whether a permit can be given. A reader alone may have one for less than a page. */
  get isFree(): boolean {
    return this.#remaining >= (this.#reserved === 0 ? 1 : this.#page)
  }

  /** Number of further entries that one reader may keep: behind an entry that is not acknowledged, it may keep `max` acknowledged ones. */
  remainingFor({ size }: AckWindow): number {
    return 2 * this.#max - size
  }

  /** Gives a permit for a page once the limit allows it, maybe at once. Returns a function that ends the waiting. */
  ask(take: (permit: Permit) => void): () => void {
    this.#waiting.add(take)
    this.next()
    return () => this.#waiting.delete(take)
  }

  /** Gives permits to the readers that wait, as far as the limit allows. */
  next(): void {
    for (const take of this.#waiting) {
      if (!this.isFree) return this.#onFull(this.#unacknowledged)
      this.#waiting.delete(take)
      take(this.#reserve(Math.min(this.#page, this.#remaining)))
    }
  }

  /** The first reader with an entry that stands in the way and that no handler has, and that entry. */
  get stalled(): { readonly reader: Reader; readonly position: Position } | undefined {
    for (const reader of this.#readers) {
      const position = reader.window?.stalled
      if (position !== undefined) return { reader, position }
    }
    return undefined
  }

  get #remaining(): number {
    let length = 0
    for (const { window } of this.#readers) length += window?.length ?? 0
    return length >= MAX_OUT_LENGTH ? 0 : this.#max - this.#reserved - this.#unacknowledged
  }

  get #unacknowledged(): number {
    let unacknowledged = 0
    for (const { window } of this.#readers) unacknowledged += window?.unacknowledged ?? 0
    return unacknowledged
  }

  #reserve(count: number): Permit {
    this.#reserved += count
    const release = () => {
      this.#reserved -= count
      this.next()
    }
    return { count, release }
  }
}
