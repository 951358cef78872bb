import type { Entry, Position } from './entry.ts'

/** What became of an entry: a reader could not handle it, now or once more. */
export interface NewDeadLetter {
  /**
   * Of the entry, which the store copies: it may be deleted from the log. Without effect for an entry that is gone already, unless
   * `entry` is given.
   */
  readonly position: Position
  /** The error of the last attempt. */
  readonly error: DeadLetterError
  /** All attempts so far. */
  readonly attempts: number
  /**
   * The number of the mark under which it was handed out again. Only this mark is taken back: after a crash a dead letter is stored
   * a second time, and may have another mark by then. Without effect where the dead letter was removed meanwhile. Default: it is new.
   */
  readonly redelivery?: number
  /** Where the log has no entry at the position: a `log.gap` is made when it is read. Default: the log's. */
  readonly entry?: Entry
}

/** The text of an error, without its stack. */
export interface DeadLetterError {
  /** At most 100 characters. */
  readonly name: string
  /** At most 1,000 characters. */
  readonly message: string
}

/** An entry that a reader could not handle. It waits until it is removed or handed out again. */
export interface StoredDeadLetter {
  readonly entry: Entry
  /** The error of the last attempt. */
  readonly error: DeadLetterError
  /** All attempts so far. */
  readonly attempts: number
  /** When the last attempt failed, in Unix ms. */
  readonly failed: number
  /** Whether it is to be handed out again, or is being handled. */
  readonly isRedelivered: boolean
}

/** A delivery of a dead letter that was handed out again. */
export interface Redelivery {
  /** The number of its mark. */
  readonly mark: number
  /** All attempts before it. */
  readonly attempts: number
}

/** A dead letter to hand out again. */
export interface MarkedDeadLetter extends StoredDeadLetter, Redelivery {
  readonly attempts: number
}

/** Dead letters to hand out again, in the order in which that was asked for. */
export interface Redeliveries {
  readonly letters: readonly MarkedDeadLetter[]
  /** The number of the last one. Read on from here. */
  readonly last: number
}

/** The dead letters of readers. A commit adds them, and removes those that were handled. */
export interface DeadLetterStore {
  /**
   * Dead letters of a reader after a position, in the order of the log; null for the first ones, which may be of entries that
   * the log has deleted. Rejects with a `LogPositionError`.
   */
  list(reader: string, after: Position | null, limit: number): Promise<readonly StoredDeadLetter[]>
  /** The number of dead letters of each reader that has any. */
  counts(): Promise<ReadonlyMap<string, number>>
  /** Marks one dead letter, or all that there are, for another delivery. Resolves with their number. */
  redeliver(reader: string, which: Position | 'all'): Promise<number>
  /** Removes one dead letter, or all that there are. Resolves with their number. */
  remove(reader: string, which: Position | 'all'): Promise<number>
  /**
   * What was marked after the mark with this number; 0 for all marks. A dead letter that fails again loses its mark, and
   * numbers are never used twice.
   */
  redeliveries(reader: string, after: number, limit: number): Promise<Redeliveries>
}
