import type { Position } from '../store/contract.ts'
import type { AckWindow } from './ack-window.ts'

/** The entries that are out are at most so long as JSON, in characters: reading pauses then. */
const MAX_OUT_LENGTH = 16 * 1024 * 1024

/** A reader whose entries count. */
interface Member {
  /** Undefined until it has begun. */
  readonly window: AckWindow | undefined
}

/** Room for entries that are being read. */
export interface Room {
  readonly count: number
  /** Gives it back, once they were read. */
  free(): void
}

/** How many entries of one consumer may be out, over all its readers, which take turns. */
export class OutLimit<Reader extends Member = Member> {
  readonly #max: number
  readonly #page: number
  readonly #readers = new Set<Reader>()
  /** Entries that are being read. */
  #reserved = 0
  /** Readers that wait for room. They come in this order, so that all of them stay near each other in the log. */
  readonly #waiting = new Set<(room: Room) => void>()

  /**
   * @param max Maximum number of entries that are not acknowledged.
   * @param page Maximum number of entries that are read at once.
   */
  constructor(max: number, page: number) {
    this.#max = max
    this.#page = Math.min(max, page)
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

  /** Whether there is room for entries. One reader alone may have less than a page. */
  get isFree(): boolean {
    return this.#room >= (this.#reserved === 0 ? 1 : this.#page)
  }

  /** How many more entries one reader may keep. Behind one that is not acknowledged, as many acknowledged ones may be again. */
  ownRoom({ size }: AckWindow): number {
    return 2 * this.#max - size
  }

  /** Gives room for a page, once there is some, maybe at once. Returns what ends the waiting. */
  ask(take: (room: Room) => void): () => void {
    this.#waiting.add(take)
    this.next()
    return () => this.#waiting.delete(take)
  }

  /** There may be room. */
  next(): void {
    for (const take of this.#waiting) {
      if (!this.isFree) return
      this.#waiting.delete(take)
      take(this.#reserve(Math.min(this.#page, this.#room)))
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

  get #room(): number {
    let unacknowledged = this.#reserved
    let length = 0
    for (const { window } of this.#readers) {
      unacknowledged += window?.unacknowledged ?? 0
      length += window?.length ?? 0
    }
    return length >= MAX_OUT_LENGTH ? 0 : this.#max - unacknowledged
  }

  #reserve(count: number): Room {
    this.#reserved += count
    const free = () => {
      this.#reserved -= count
      this.next()
    }
    return { count, free }
  }
}
