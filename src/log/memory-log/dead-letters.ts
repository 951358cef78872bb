import type { Entry, Position } from '../store/contract.ts'
import type {
  MarkedDeadLetter,
  NewDeadLetter,
  Redeliveries,
  StoredDeadLetter,
} from '../store/dead-letter-store.ts'
import { Letters } from './letters.ts'
import type { Letter, MarkedLetter } from './letters.ts'
import type { Partitions } from './partitions.ts'

/** The dead letters of each reader. Entries are JSON, so that a caller and the log never share a value. */
export class DeadLetters {
  readonly #entries: Partitions
  readonly #readers = new Map<string, Letters<string>>()

  constructor(entries: Partitions) {
    this.#entries = entries
  }

  /** Adds a letter, or updates the one that was handed out. */
  put(reader: string, letter: NewDeadLetter, now: number): void {
    const letters = this.#lettersOf(reader)
    const entry = letters.isNew(letter) ? (letter.entry ?? this.#entries.entryAt(letter.position)) : undefined
    letters.put(letter, entry && JSON.stringify(entry), now)
    this.#readers.set(reader, letters)
  }

  list(reader: string, after: Position | null, limit: number): readonly StoredDeadLetter[] {
    const from = after === null ? 0 : this.#entries.order(after)
    const letters = this.#lettersOf(reader).after(from).slice(0, limit)
    return letters.map(([, letter]) => stored(letter))
  }

  counts(): ReadonlyMap<string, number> {
    const counts = Array.from(this.#readers, ([reader, { size }]) => [reader, size] as const)
    return new Map(counts.filter(([, size]) => size > 0))
  }

  /** Returns the number of those that had no mark. */
  mark(reader: string, which: Position | 'all'): number {
    return this.#lettersOf(reader).mark(which === 'all' ? which : [which])
  }

  remove(reader: string, which: Position | 'all'): number {
    return this.#lettersOf(reader).remove(which === 'all' ? which : [which]).length
  }

  /** Removes the letters whose entry, as JSON, is one of these. */
  forget(isForgotten: (entry: string) => boolean): void {
    for (const letters of this.#readers.values()) {
      const found = letters.after(-1).filter(([, { copy }]) => isForgotten(copy))
      letters.remove(found.map(([position]) => position))
    }
  }

  redeliveries(reader: string, after: number, limit: number): Redeliveries {
    const letters = this.#lettersOf(reader).marked(after, limit).map(marked)
    return { letters, last: letters.at(-1)?.mark ?? after }
  }

  hasRedelivery(reader: string, after: number): boolean {
    return this.#lettersOf(reader).marked(after, 1).length > 0
  }

  #lettersOf(reader: string): Letters<string> {
    return this.#readers.get(reader) ?? new Letters((position) => this.#entries.order(position))
  }
}

function stored({ copy, error, attempts, failed, mark }: Letter<string>): StoredDeadLetter {
  const entry: Entry = JSON.parse(copy)
  return { entry, error: { ...error }, attempts, failed, isRedelivered: mark !== undefined }
}

function marked(letter: MarkedLetter<string>): MarkedDeadLetter {
  return { ...stored(letter), mark: letter.mark }
}
