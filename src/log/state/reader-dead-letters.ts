import type { Position } from '../store/entry.ts'
import type { NewDeadLetter } from '../store/dead-letter-store.ts'

/** A dead letter as a log keeps it. */
export interface ReaderDeadLetter<Copy> {
  /** The entry, or a reference to it. */
  readonly copy: Copy
  readonly error: NewDeadLetter['error']
  readonly attempts: number
  /** When the last attempt failed, in Unix ms. */
  readonly failed: number
  /** Its redelivery number; undefined if it is not to be redelivered. */
  readonly redelivery: number | undefined
}

/** A dead letter to redeliver. */
export interface RedeliveredReaderDeadLetter<Copy> extends ReaderDeadLetter<Copy> {
  readonly position: Position
  readonly redelivery: number
}

/** Dead letters of one reader, or all that there are. */
export type DeadLetterSelection = 'all' | readonly Position[]

/** The dead letters of one reader, by their positions. */
export class ReaderDeadLetters<Copy> {
  readonly #order: (position: Position) => number
  readonly #deadLetters = new Map<Position, ReaderDeadLetter<Copy>>()
  /** The greatest redelivery number that was ever given, since numbers are never used twice. */
  #lastRedelivery = 0

  /** @param order A number that grows in the order of the log. */
  constructor(order: (position: Position) => number) {
    this.#order = order
  }

  get size(): number {
    return this.#deadLetters.size
  }

  get lastRedelivery(): number {
    return this.#lastRedelivery
  }

  has(position: Position): boolean {
    return this.#deadLetters.has(position)
  }

  /** Whether a dead letter is new, and so needs a copy of its entry. */
  isNew({ position, redelivery }: Pick<NewDeadLetter, 'position' | 'redelivery'>): boolean {
    return redelivery === undefined && !this.#deadLetters.has(position)
  }

  /**
   * Adds a dead letter, or updates the one that was redelivered.
   *
   * @param copy The copy of the entry for a new one. Without it, nothing is added.
   */
  put({ position, error, attempts, redelivery }: NewDeadLetter, copy: Copy | undefined, now: number): void {
    const known = this.#deadLetters.get(position)
    const own = known === undefined ? copy : known.copy
    if (own === undefined) return
    // A dead letter that is stored a second time, after a crash, may have got another redelivery number meanwhile.
    const next = known?.redelivery === redelivery ? undefined : known?.redelivery
    this.#deadLetters.set(position, {
      copy: own,
      error: { ...error },
      attempts,
      failed: now,
      redelivery: next,
    })
  }

  /** Puts a dead letter back as it was saved. */
  restore(position: Position, deadLetter: ReaderDeadLetter<Copy>): void {
    this.#deadLetters.set(position, deadLetter)
  }

  /** Continues with the redelivery numbers after this one. */
  restoreLastRedelivery(last: number): void {
    this.#lastRedelivery = last
  }

  /** The dead letters after a place in the order of the log, in that order. */
  after(order: number): readonly (readonly [Position, ReaderDeadLetter<Copy>])[] {
    return this.#sorted((position) => this.#order(position) > order)
  }

  /** The positions of the dead letters among these that exist. */
  known(which: DeadLetterSelection): readonly Position[] {
    return which === 'all' ? [...this.#deadLetters.keys()] : which.filter((each) => this.has(each))
  }

  /** Number of the dead letters among these without a redelivery number. */
  redeliverable(which: DeadLetterSelection): number {
    return this.#notRedelivered(which).length
  }

  /** Gives redelivery numbers to dead letters without one. Returns how many got one. */
  redeliver(which: DeadLetterSelection): number {
    const chosen = this.#notRedelivered(which)
    for (const [position, deadLetter] of chosen) {
      this.#lastRedelivery += 1
      this.#deadLetters.set(position, { ...deadLetter, redelivery: this.#lastRedelivery })
    }
    return chosen.length
  }

  /** Returns the positions of the dead letters that were removed. */
  remove(which: DeadLetterSelection): readonly Position[] {
    const removed = this.known(which)
    for (const position of removed) this.#deadLetters.delete(position)
    return removed
  }

  /** Dead letters with a greater redelivery number than this one, in the order of these numbers. */
  redeliveries(after: number, limit: number): readonly RedeliveredReaderDeadLetter<Copy>[] {
    return Array.from(this.#deadLetters)
      .flatMap(([position, deadLetter]) =>
        deadLetter.redelivery === undefined || deadLetter.redelivery <= after
          ? []
          : [{ ...deadLetter, position, redelivery: deadLetter.redelivery }],
      )
      .toSorted((a, b) => a.redelivery - b.redelivery)
      .slice(0, limit)
  }

  #notRedelivered(which: DeadLetterSelection): (readonly [Position, ReaderDeadLetter<Copy>])[] {
    const isWanted = which === 'all' ? () => true : (position: Position) => which.includes(position)
    return this.#sorted(isWanted).filter(([, { redelivery }]) => redelivery === undefined)
  }

  #sorted(isWanted: (position: Position) => boolean): (readonly [Position, ReaderDeadLetter<Copy>])[] {
    return Array.from(this.#deadLetters)
      .filter(([position]) => isWanted(position))
      .toSorted(([a], [b]) => this.#order(a) - this.#order(b))
  }
}
