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
  readonly mark: number | undefined
}

/** A dead letter to redeliver. */
export interface MarkedReaderDeadLetter<Copy> extends ReaderDeadLetter<Copy> {
  readonly position: Position
  readonly mark: number
}

/** Dead letters of one reader, or all that there are. */
export type DeadLetterSelection = 'all' | readonly Position[]

/** The dead letters of one reader, by their positions. */
export class ReaderDeadLetters<Copy> {
  readonly #order: (position: Position) => number
  readonly #deadLetters = new Map<Position, ReaderDeadLetter<Copy>>()
  /** The greatest redelivery number that was ever given, since numbers are never used twice. */
  #lastMark = 0

  /** @param order A number that grows in the order of the log. */
  constructor(order: (position: Position) => number) {
    this.#order = order
  }

  get size(): number {
    return this.#deadLetters.size
  }

  get lastMark(): number {
    return this.#lastMark
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
    const mark = known?.mark === redelivery ? undefined : known?.mark
    this.#deadLetters.set(position, { copy: own, error: { ...error }, attempts, failed: now, mark })
  }

  /** Puts a dead letter back as it was saved. */
  restore(position: Position, deadLetter: ReaderDeadLetter<Copy>): void {
    this.#deadLetters.set(position, deadLetter)
  }

  /** Continues with the redelivery numbers after this one. */
  restoreLastMark(mark: number): void {
    this.#lastMark = mark
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
  markable(which: DeadLetterSelection): number {
    return this.#unmarked(which).length
  }

  /** Gives redelivery numbers to dead letters without one. Returns how many got one. */
  mark(which: DeadLetterSelection): number {
    const unmarked = this.#unmarked(which)
    for (const [position, deadLetter] of unmarked) {
      this.#lastMark += 1
      this.#deadLetters.set(position, { ...deadLetter, mark: this.#lastMark })
    }
    return unmarked.length
  }

  /** Returns the positions of the dead letters that were removed. */
  remove(which: DeadLetterSelection): readonly Position[] {
    const removed = this.known(which)
    for (const position of removed) this.#deadLetters.delete(position)
    return removed
  }

  /** Dead letters with a greater redelivery number than this one, in the order of these numbers. */
  marked(after: number, limit: number): readonly MarkedReaderDeadLetter<Copy>[] {
    return Array.from(this.#deadLetters)
      .flatMap(([position, deadLetter]) =>
        deadLetter.mark === undefined || deadLetter.mark <= after
          ? []
          : [{ ...deadLetter, position, mark: deadLetter.mark }],
      )
      .toSorted((a, b) => a.mark - b.mark)
      .slice(0, limit)
  }

  #unmarked(which: DeadLetterSelection): (readonly [Position, ReaderDeadLetter<Copy>])[] {
    const isWanted = which === 'all' ? () => true : (position: Position) => which.includes(position)
    return this.#sorted(isWanted).filter(([, { mark }]) => mark === undefined)
  }

  #sorted(isWanted: (position: Position) => boolean): (readonly [Position, ReaderDeadLetter<Copy>])[] {
    return Array.from(this.#deadLetters)
      .filter(([position]) => isWanted(position))
      .toSorted(([a], [b]) => this.#order(a) - this.#order(b))
  }
}
