import type { Entry, Position } from '../store/contract.ts'
import type {
  MarkedDeadLetter,
  NewDeadLetter,
  Redeliveries,
  StoredDeadLetter,
} from '../store/dead-letter-store.ts'
import type { Partitions } from './partitions.ts'

interface Letter {
  /** JSON, so that a caller and the log never share a value. */
  readonly entry: string
  readonly error: NewDeadLetter['error']
  readonly attempts: number
  readonly failed: number
  /** The number of its mark; undefined where it is not handed out. */
  readonly mark: number | undefined
}

type Letters = Map<Position, Letter>

/** The dead letters of each reader. */
export class DeadLetters {
  readonly #entries: Partitions
  readonly #readers = new Map<string, Letters>()
  #lastMark = 0

  constructor(entries: Partitions) {
    this.#entries = entries
  }

  /** Adds a letter, or updates the one that was handed out. */
  put(reader: string, letter: NewDeadLetter, now: number): void {
    const { position, error, attempts, redelivery, entry: given } = letter
    const letters = this.#readers.get(reader) ?? new Map<Position, Letter>()
    const known = letters.get(position)
    const found =
      known === undefined && redelivery === undefined ? (given ?? this.#entries.entryAt(position)) : undefined
    const entry = known?.entry ?? (found && JSON.stringify(found))
    if (entry === undefined) return
    // A letter that is stored a second time, after a crash, may have been marked meanwhile.
    const mark = known?.mark === redelivery ? undefined : known?.mark
    letters.set(position, { entry, error: { ...error }, attempts, failed: now, mark })
    this.#readers.set(reader, letters)
  }

  list(reader: string, after: Position | null, limit: number): readonly StoredDeadLetter[] {
    const from = after === null ? 0 : this.#entries.order(after)
    return this.#sorted(reader, (position) => this.#entries.order(position) > from)
      .slice(0, limit)
      .map(([, letter]) => stored(letter))
  }

  counts(): ReadonlyMap<string, number> {
    const counts = Array.from(this.#readers, ([reader, { size }]) => [reader, size] as const)
    return new Map(counts.filter(([, size]) => size > 0))
  }

  /** Returns the number of those that had no mark. */
  mark(reader: string, which: Position | 'all'): number {
    const letters = this.#sorted(reader, (position) => which === 'all' || position === which)
    const unmarked = letters.filter(([, { mark }]) => mark === undefined)
    for (const [position, letter] of unmarked) {
      this.#lastMark += 1
      this.#readers.get(reader)?.set(position, { ...letter, mark: this.#lastMark })
    }
    return unmarked.length
  }

  remove(reader: string, which: Position | 'all'): number {
    const letters = this.#readers.get(reader)
    if (letters === undefined) return 0
    const removed = which === 'all' ? letters.size : Number(letters.delete(which))
    if (which === 'all') letters.clear()
    return removed
  }

  /** Removes the letters whose entry, as JSON, is one of these. */
  forget(isForgotten: (entry: string) => boolean): void {
    for (const letters of this.#readers.values()) {
      for (const [position, { entry }] of letters) if (isForgotten(entry)) letters.delete(position)
    }
  }

  redeliveries(reader: string, after: number, limit: number): Redeliveries {
    const letters = this.#sorted(reader, () => true)
      .flatMap(([, letter]) => marked(letter) ?? [])
      .filter(({ mark }) => mark > after)
      .toSorted((a, b) => a.mark - b.mark)
      .slice(0, limit)
    return { letters, last: letters.at(-1)?.mark ?? after }
  }

  hasRedelivery(reader: string, after: number): boolean {
    return this.redeliveries(reader, after, 1).letters.length > 0
  }

  #sorted(reader: string, isWanted: (position: Position) => boolean): (readonly [Position, Letter])[] {
    return Array.from(this.#readers.get(reader) ?? [])
      .filter(([position]) => isWanted(position))
      .toSorted(([a], [b]) => this.#entries.order(a) - this.#entries.order(b))
  }
}

function stored({ entry, error, attempts, failed, mark }: Letter): StoredDeadLetter {
  const parsed: Entry = JSON.parse(entry)
  return { entry: parsed, error: { ...error }, attempts, failed, isRedelivered: mark !== undefined }
}

/** Undefined where it is not handed out. */
function marked(letter: Letter): MarkedDeadLetter | undefined {
  return letter.mark === undefined ? undefined : { ...stored(letter), mark: letter.mark }
}
