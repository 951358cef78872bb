import type { Entry, Position } from '../store/contract.ts'
import type {
  RedeliveredDeadLetter,
  NewDeadLetter,
  Redeliveries,
  StoredDeadLetter,
} from '../store/dead-letter-store.ts'
import { ReaderDeadLetters } from '../state/reader-dead-letters.ts'
import type { ReaderDeadLetter, RedeliveredReaderDeadLetter } from '../state/reader-dead-letters.ts'
import type { MemoryPartitions } from './partitions.ts'

/** The dead letters of each reader. Entries are JSON, so that a caller and the log never share a value. */
export class MemoryDeadLetters {
  readonly #entries: MemoryPartitions
  readonly #readers = new Map<string, ReaderDeadLetters<string>>()

  constructor(entries: MemoryPartitions) {
    this.#entries = entries
  }

  /** Adds a dead letter, or updates the one that was redelivered. */
  put(reader: string, deadLetter: NewDeadLetter, now: number): void {
    const deadLetters = this.#deadLettersIn(reader)
    const entry = deadLetters.isNew(deadLetter)
      ? (deadLetter.entry ?? this.#entries.entryAt(deadLetter.position))
      : undefined
    deadLetters.put(deadLetter, entry && JSON.stringify(entry), now)
    this.#readers.set(reader, deadLetters)
  }

  list(reader: string, after: Position | null, limit: number): readonly StoredDeadLetter[] {
    const from = after === null ? 0 : this.#entries.order(after)
    const deadLetters = this.#deadLettersIn(reader).after(from).slice(0, limit)
    return deadLetters.map(([, deadLetter]) => stored(deadLetter))
  }

  counts(): ReadonlyMap<string, number> {
    const counts = Array.from(this.#readers, ([reader, { size }]) => [reader, size] as const)
    return new Map(counts.filter(([, size]) => size > 0))
  }

  /** Marks dead letters for redelivery. Returns the number of those that were not to be redelivered yet. */
  redeliver(reader: string, which: Position | 'all'): number {
    return this.#deadLettersIn(reader).redeliver(which === 'all' ? which : [which])
  }

  remove(reader: string, which: Position | 'all'): number {
    return this.#deadLettersIn(reader).remove(which === 'all' ? which : [which]).length
  }

  /** Removes the dead letters whose entry, as JSON, is one of these. */
  forget(isForgotten: (entry: string) => boolean): void {
    for (const deadLetters of this.#readers.values()) {
      const found = deadLetters.after(-1).filter(([, { copy }]) => isForgotten(copy))
      deadLetters.remove(found.map(([position]) => position))
    }
  }

  redeliveries(reader: string, after: number, limit: number): Redeliveries {
    const deadLetters = this.#deadLettersIn(reader).redeliveries(after, limit).map(redelivered)
    return { deadLetters, last: deadLetters.at(-1)?.number ?? after }
  }

  hasRedelivery(reader: string, after: number): boolean {
    return this.#deadLettersIn(reader).redeliveries(after, 1).length > 0
  }

  #deadLettersIn(reader: string): ReaderDeadLetters<string> {
    return this.#readers.get(reader) ?? new ReaderDeadLetters((position) => this.#entries.order(position))
  }
}

function stored({ copy, error, attempts, failed, redelivery }: ReaderDeadLetter<string>): StoredDeadLetter {
  const entry: Entry = JSON.parse(copy)
  return { entry, error: { ...error }, attempts, failed, isRedelivered: redelivery !== undefined }
}

function redelivered(deadLetter: RedeliveredReaderDeadLetter<string>): RedeliveredDeadLetter {
  return { ...stored(deadLetter), number: deadLetter.redelivery }
}
