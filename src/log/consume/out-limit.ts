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

/** How many entries of one consumer may be out, over all its readers. */
export class OutLimit<Reader extends Member = Member> {
  readonly #max: number
  readonly #readers = new Set<Reader>()
  /** Entries that are being read. */
  #reserved = 0
  /** What wakes readers that wait for room. */
  readonly #waiting = new Set<() => void>()

  /** @param max Maximum number of entries that are not acknowledged. */
  constructor(max: number) {
    this.#max = max
  }

  add(reader: Reader): void {
    this.#readers.add(reader)
  }

  delete(reader: Reader): void {
    this.#readers.delete(reader)
    this.next()
  }

  /** How many more entries may be out. */
  get room(): number {
    let unacknowledged = this.#reserved
    let length = 0
    for (const { window } of this.#readers) {
      unacknowledged += window?.unacknowledged ?? 0
      length += window?.length ?? 0
    }
    return length >= MAX_OUT_LENGTH ? 0 : this.#max - unacknowledged
  }

  /** How many more entries one reader may keep. Behind one that is not acknowledged, as many acknowledged ones may be again. */
  ownRoom({ size }: AckWindow): number {
    return 2 * this.#max - size
  }

  /** Takes room for entries before they are read. */
  reserve(count: number): Room {
    this.#reserved += count
    const free = () => {
      this.#reserved -= count
      this.next()
    }
    return { count, free }
  }

  /** Wakes a reader once there may be room for it. Returns what ends that. */
  whenFree(wake: () => void): () => void {
    this.#waiting.add(wake)
    return () => this.#waiting.delete(wake)
  }

  /** There may be room. It wakes one reader, which passes on what it cannot use. */
  next(): void {
    const [wake] = this.#waiting
    if (wake === undefined) return
    this.#waiting.delete(wake)
    wake()
  }

  /** The first reader with an entry that stands in the way and that no handler has, and that entry. */
  get stalled(): { readonly reader: Reader; readonly position: Position } | undefined {
    for (const reader of this.#readers) {
      const position = reader.window?.stalled
      if (position !== undefined) return { reader, position }
    }
    return undefined
  }
}
