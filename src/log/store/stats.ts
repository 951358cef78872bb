import type { Position } from './entry.ts'

/** How far a consumer or a process has come. Of one that is shared, the numbers of all its parts together. */
export interface ReaderStats {
  readonly kind: 'consumer' | 'process'
  readonly name: string
  /** Everything up to here is acknowledged. Of one that is shared, that of the part that is the furthest behind. */
  readonly cursor: Position
  readonly lag: {
    /**
     * Number of entries that are not acknowledged, those of unwanted types after the cursor included, about. Of one that is shared,
     * the largest one of its parts, where the entries of other parts count too.
     */
    readonly entries: number
    /** How long ago the oldest one was recorded, in seconds. */
    readonly seconds: number
  }
  /** When the oldest entry that is not acknowledged was recorded, in Unix ms; null for none. */
  readonly oldestUnacknowledged: number | null
  /** Number of acknowledged entries after it. */
  readonly acknowledgedAhead: number
  readonly deadLetters: number
  /** Whether retention waits for it. */
  readonly holdsRetention: boolean
  /** A process that waits until the log is smaller, since its output has used up the reserve above `maxBytes`. */
  readonly isPaused: boolean
  /**
   * Process and host where it runs, or the name that was given to the log; of one that is shared, each of them, after `, `. Null where it
   * does not run.
   */
  readonly owner: string | null
}

/** An upstream stream that was recorded. */
export interface StreamStats {
  readonly name: string
  /** The service's position after what was recorded; null where it has none. */
  readonly position: string | null
  /** Where it is being recorded; null where it is not. */
  readonly owner: string | null
}

/** The numbers of a log. */
export interface LogStats {
  readonly entries: number
  /** Of used pages, in bytes; in memory, of the entries, about. */
  readonly bytes: number
  /** Of the write-ahead log, in bytes. */
  readonly walBytes: number
  /** When the oldest entry was recorded, in Unix ms; null for an empty log. */
  readonly oldest: number | null
  /** When the newest one was recorded, in Unix ms; null for an empty log. */
  readonly newest: number | null
  readonly readers: readonly ReaderStats[]
  readonly streams: readonly StreamStats[]
  /** Webhooks that are stored and not recorded yet: their number, and the size of their bodies in bytes. */
  readonly inbox: { readonly pending: number; readonly bytes: number }
  /** The reader that keeps recorders from appending, such as `consumer:billing`; null for none. */
  readonly pausedBy: string | null
}
