import type { ReaderDeadLetter, DeadLetterSelection } from '../../state/reader-dead-letters.ts'
import { MAX_PAGE_LENGTH } from '../../store/contract.ts'
import type { Entry, Position } from '../../store/contract.ts'
import type {
  DeadLetterStore,
  RedeliveredDeadLetter,
  Redeliveries,
  StoredDeadLetter,
} from '../../store/dead-letter-store.ts'
import type { NatsClaims } from './claims.ts'
import type { DeadLetterCopies } from './dead-letter-copies.ts'
import type { Journals } from './journals.ts'
import type { JournaledEntries } from './journaled-entries.ts'

/** How many copies are read at once. */
const CONCURRENCY = 16

/** Maximum number of dead letters of a source that one message removes. */
const MAX_FORGOTTEN = 1_000

/** Dependencies of the dead letters of a log. */
export interface DeadLetterParts {
  readonly journals: Journals
  readonly claims: NatsClaims
  readonly copies: DeadLetterCopies
  readonly entries: JournaledEntries
}

/** The dead letters of a log. Any open log changes them, by messages of the reader's journal. */
export class NatsDeadLetters implements DeadLetterStore {
  readonly #parts: DeadLetterParts

  constructor(parts: DeadLetterParts) {
    this.#parts = parts
  }

  async list(reader: string, after: Position | null, limit: number): Promise<readonly StoredDeadLetter[]> {
    const { journals, entries } = this.#parts
    if (after !== null) await entries.checkPositions([after])
    const from = after === null ? -1 : entries.order(after)
    const deadLetters = await journals
      .of(reader)
      .read((state) => state.deadLetters.after(from).slice(0, limit))
    return this.#page(reader, deadLetters, (deadLetter, entry) => stored(deadLetter, entry))
  }

  async counts(): Promise<ReadonlyMap<string, number>> {
    const { journals } = this.#parts
    const counts = new Map<string, number>()
    for (const { name, deadLetters } of await journals.ofReaders()) {
      if (deadLetters === 0) continue
      const count = await journals.of(name).read((state) => state.deadLetters.size)
      if (count > 0) counts.set(name, count)
    }
    return counts
  }

  async redeliver(reader: string, which: Position | 'all'): Promise<number> {
    const { journals, entries } = this.#parts
    const wanted = await this.#which(which)
    const journal = journals.of(reader)
    let count = 0
    await journal.read(() => {})
    await journal.write(({ deadLetters }) => {
      count = deadLetters.redeliverable(wanted)
      return count === 0 ? undefined : { redelivered: wanted }
    })
    if (count > 0) entries.notify()
    return count
  }

  async remove(reader: string, which: Position | 'all'): Promise<number> {
    return this.#remove(reader, await this.#which(which))
  }

  async redeliveries(reader: string, after: number, limit: number): Promise<Redeliveries> {
    if (this.#hasNone(reader)) return { deadLetters: [], last: after }
    const chosen = await this.#parts.journals
      .of(reader)
      .read((state) =>
        state.deadLetters
          .redeliveries(after, limit)
          .map((deadLetter) => [deadLetter.position, deadLetter] as const),
      )
    const deadLetters = await this.#page(reader, chosen, (deadLetter, entry): RedeliveredDeadLetter => {
      return { ...stored(deadLetter, entry), number: deadLetter.redelivery }
    })
    return { deadLetters, last: deadLetters.at(-1)?.number ?? after }
  }

  /** Whether there are dead letters with a greater redelivery number than this one. */
  async hasRedelivery(reader: string, after: number): Promise<boolean> {
    if (this.#hasNone(reader)) return false
    return this.#parts.journals
      .of(reader)
      .read((state) => state.deadLetters.redeliveries(after, 1).length > 0)
  }

  /** Removes the dead letters of a source, and all copies of its entries. */
  async forget(source: string): Promise<void> {
    const { journals, copies } = this.#parts
    const found = await copies.ofSource(source)
    if (found.length === 0) return
    for (const { name, deadLetters } of await journals.ofReaders()) {
      if (deadLetters === 0) continue
      const own = found.filter(({ subject, position }) => subject === copies.subject(name, position))
      const positions = own.map(({ position }) => position)
      for (let at = 0; at < positions.length; at += MAX_FORGOTTEN) {
        await this.#removeLetters(name, positions.slice(at, at + MAX_FORGOTTEN))
      }
    }
    await copies.erase(found)
  }

  /** Whether this open log owns a reader without dead letters. Only its owner adds dead letters, and without them there is nothing to redeliver. */
  #hasNone(reader: string): boolean {
    const { journals, claims } = this.#parts
    const { sequence, deadLetters } = journals.of(reader).known
    return claims.holds(reader) && sequence > 0 && deadLetters.size === 0
  }

  async #remove(reader: string, which: DeadLetterSelection): Promise<number> {
    const { removed, sequence } = await this.#removeLetters(reader, which)
    if (sequence !== undefined) await this.#parts.copies.remove(reader, removed, sequence)
    return removed.length
  }

  /** The copies of their entries stay. */
  async #removeLetters(reader: string, which: DeadLetterSelection) {
    const journal = this.#parts.journals.of(reader)
    let removed: readonly Position[] = []
    await journal.read(() => {})
    const sequence = await journal.write(({ deadLetters }) => {
      removed = deadLetters.known(which)
      return removed.length === 0 ? undefined : { removed: which }
    })
    return { removed, sequence }
  }

  async #which(which: Position | 'all'): Promise<DeadLetterSelection> {
    if (which === 'all') return which
    await this.#parts.entries.checkPositions([which])
    return [which]
  }

  /** Reads the copies of dead letters, until their total length is large. Dead letters that were removed meanwhile are left out. */
  async #page<Kept extends ReaderDeadLetter<true>, Found>(
    reader: string,
    deadLetters: readonly (readonly [Position, Kept])[],
    foundOf: (deadLetter: Kept, entry: Entry) => Found,
  ): Promise<readonly Found[]> {
    const found: Found[] = []
    let length = 0
    for (let at = 0; at < deadLetters.length && length < MAX_PAGE_LENGTH; at += CONCURRENCY) {
      const step = deadLetters.slice(at, at + CONCURRENCY)
      const copies = await Promise.all(step.map(([position]) => this.#parts.copies.read(reader, position)))
      for (const [index, [, deadLetter]] of step.entries()) {
        const json = copies[index]
        if (json === undefined) continue
        length += json.length
        found.push(foundOf(deadLetter, JSON.parse(json)))
      }
    }
    return found
  }
}

function stored(
  { error, attempts, failed, redelivery }: ReaderDeadLetter<true>,
  entry: Entry,
): StoredDeadLetter {
  return { entry, error: { ...error }, attempts, failed, isRedelivered: redelivery !== undefined }
}
