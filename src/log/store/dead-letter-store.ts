import type { Entry, Position } from './entry.ts'

/** An entry that a reader could not handle, for the first time or again. */
export interface NewDeadLetter {
  /**
   * Position of the entry. The store copies the entry, since it may be deleted from the log. Without effect for an entry that is gone
   * already, unless `entry` is given.
   */
  readonly position: Position
  /** The error of the last attempt. */
  readonly error: DeadLetterError
  /** Number of attempts so far. */
  readonly attempts: number
  /**
   * The redelivery number under which it was handed out. Only this number is taken back: after a crash, a dead letter is stored a
   * second time, and may have another number by then. Without effect if the dead letter was removed meanwhile. Default: it is new.
   */
  readonly redelivery?: number
  /** The entry, if the log has none at the position: a `log.gap` is made when it is read. Default: the entry of the log. */
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
  /** Whether it is to be redelivered, or is being handled. */
  readonly isRedelivered: boolean
}

/** A delivery of a dead letter that was handed out again. */
export interface Redelivery {
  /** Its redelivery number. */
  readonly number: number
  /** Number of attempts before this delivery. */
  readonly attempts: number
}

/** A dead letter to redeliver. */
export interface RedeliveredDeadLetter extends StoredDeadLetter, Redelivery {
  readonly attempts: number
}

/** Dead letters to redeliver, in the order of the requests. */
export interface Redeliveries {
  readonly deadLetters: readonly RedeliveredDeadLetter[]
  /** The redelivery number of the last one. Read on from here. */
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
  /** Marks one dead letter, or all that there are, for redelivery. Resolves with the number of dead letters that were marked. */
  redeliver(reader: string, which: Position | 'all'): Promise<number>
  /** Removes one dead letter, or all that there are. Resolves with the number of removed ones. */
  remove(reader: string, which: Position | 'all'): Promise<number>
  /**
   * Dead letters with a greater redelivery number than this one; 0 for all that are to be redelivered. A dead letter that fails again
   * loses its number, and numbers are never used twice.
   */
  redeliveries(reader: string, after: number, limit: number): Promise<Redeliveries>
}
