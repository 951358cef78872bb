import type { Position } from '../store/entry.ts'
import type { NewDeadLetter } from '../store/dead-letter-store.ts'

/** A dead letter as a log keeps it. */
export interface ReaderDeadLetter<Copy> {
  /** The entry, or where it is. */
  readonly copy: Copy
  readonly error: NewDeadLetter['error']
  readonly attempts: number
  /** When the last attempt failed, in Unix ms. */
  readonly failed: number
  /** The number of its mark; undefined where it is not handed out. */
  readonly mark: number | undefined
}

/** A dead letter that is to be handed out again. */
export interface MarkedReaderDeadLetter<Copy> extends ReaderDeadLetter<Copy> {
  readonly position: Position
  readonly mark: number
}

/** Dead letters of one reader, or all that there are. */
export type Which = 'all' | readonly Position[]

/** The dead letters of one reader, by their positions. */
export class ReaderDeadLetters<Copy> {
  readonly #order: (position: Position) => number
  readonly #deadLetters = new Map<Position, ReaderDeadLetter<Copy>>()
  /** Of all that were ever given, since numbers are never used twice. */
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

  /** Whether a dead letter is stored only with a copy of its entry: it is new. */
  isNew({ position, redelivery }: Pick<NewDeadLetter, 'position' | 'redelivery'>): boolean {
    return redelivery === undefined && !this.#deadLetters.has(position)
  }

  /**
   * Adds a dead letter, or updates the one that was handed out.
   *
   * @param copy For a new one. Without it, nothing is added.
   */
  put({ position, error, attempts, redelivery }: NewDeadLetter, copy: Copy | undefined, now: number): void {
    const known = this.#deadLetters.get(position)
    const own = known === undefined ? copy : known.copy
    if (own === undefined) return
    // A dead letter that is stored a second time, after a crash, may have been marked meanwhile.
    const mark = known?.mark === redelivery ? undefined : known?.mark
    this.#deadLetters.set(position, { copy: own, error: { ...error }, attempts, failed: now, mark })
  }

  /** Puts a dead letter back as it was saved. */
  restore(position: Position, deadLetter: ReaderDeadLetter<Copy>): void {
    this.#deadLetters.set(position, deadLetter)
  }

  /** Goes on with the numbers after this one. */
  restoreLastMark(mark: number): void {
    this.#lastMark = mark
  }

  /** The dead letters after a place in the order of the log, in that order. */
  after(order: number): readonly (readonly [Position, ReaderDeadLetter<Copy>])[] {
    return this.#sorted((position) => this.#order(position) > order)
  }

  /** The positions of these dead letters, where they are there. */
  known(which: Which): readonly Position[] {
    return which === 'all' ? [...this.#deadLetters.keys()] : which.filter((each) => this.has(each))
  }

  /** How many of these dead letters have no mark. */
  markable(which: Which): number {
    return this.#unmarked(which).length
  }

  /** Marks dead letters for another delivery. Returns the number of those that had no mark. */
  mark(which: Which): number {
    const unmarked = this.#unmarked(which)
    for (const [position, deadLetter] of unmarked) {
      this.#lastMark += 1
      this.#deadLetters.set(position, { ...deadLetter, mark: this.#lastMark })
    }
    return unmarked.length
  }

  /** Returns the positions of the dead letters that were removed. */
  remove(which: Which): readonly Position[] {
    const removed = this.known(which)
    for (const position of removed) this.#deadLetters.delete(position)
    return removed
  }

  /** What was marked after the mark with this number, in the order of the marks. */
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

  #unmarked(which: Which): (readonly [Position, ReaderDeadLetter<Copy>])[] {
    const isWanted = which === 'all' ? () => true : (position: Position) => which.includes(position)
    return this.#sorted(isWanted).filter(([, { mark }]) => mark === undefined)
  }

  #sorted(isWanted: (position: Position) => boolean): (readonly [Position, ReaderDeadLetter<Copy>])[] {
    return Array.from(this.#deadLetters)
      .filter(([position]) => isWanted(position))
      .toSorted(([a], [b]) => this.#order(a) - this.#order(b))
  }
}
