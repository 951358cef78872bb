import type { Position } from './entry.ts'

/** The progress of a consumer or a process. For a shared one, the numbers of all its parts together. */
export interface ReaderStats {
  readonly kind: 'consumer' | 'process'
  readonly name: string
  /** The position up to which everything is acknowledged. For a shared reader, that of the part that is the furthest behind. */
  readonly cursor: Position
  readonly lag: {
    /**
     * Number of entries that are not acknowledged, those of unwanted types after the cursor included, about. For a shared reader, the
     * largest number of its parts; the entries of other parts count in it too.
     */
    readonly entries: number
    /** Age of the oldest of these entries since it was recorded, in seconds. */
    readonly seconds: number
  }
  /** When the oldest entry that is not acknowledged was recorded, in Unix ms; null for none. */
  readonly oldestUnacknowledged: number | null
  /** Number of acknowledged entries after the oldest one that is not acknowledged. */
  readonly acknowledgedAhead: number
  readonly deadLetters: number
  /**
   * The watermark of a process, in Unix ms: its event time less `lateness`. For a shared process, that of the part that is the furthest
   * behind. Null before its first tick, and for a consumer.
   */
  readonly watermark: number | null
  /** Whether retention waits for it. */
  readonly holdsRetention: boolean
  /** A process that waits until the log is smaller, since its output has used up the reserve above `maxBytes`. */
  readonly isPaused: boolean
  /**
   * Process and host of its owner, or the name that was given to the log; for a shared reader, all of them, separated by `, `. Null if it
   * does not run.
   */
  readonly owner: string | null
}

/** An upstream stream that was recorded. */
interface StreamStats {
  readonly name: string
  /** The service's position after what was recorded; null if it has none. */
  readonly position: string | null
  /** Process and host of its recorder, or the name that was given to the log; null if it is not being recorded. */
  readonly owner: string | null
}

/** The numbers of a log. */
export interface LogStats {
  readonly entries: number
  /** Size of the used pages, in bytes; in memory, size of the entries, about. */
  readonly bytes: number
  /** Size of the write-ahead log, in bytes. */
  readonly walBytes: number
  /** When the oldest entry was recorded, in Unix ms; null for an empty log. */
  readonly oldest: number | null
  /** When the newest one was recorded, in Unix ms; null for an empty log. */
  readonly newest: number | null
  readonly readers: readonly ReaderStats[]
  readonly streams: readonly StreamStats[]
  /** Event time, which `log.tick` moves. */
  readonly time: {
    /** Time of the log, in Unix ms. */
    readonly now: number
    /** The time up to which all events have come, by the last tick, in Unix ms; null if it is not known. */
    readonly through: number | null
    /** Whether all events up to there have come. False if the last tick has waited for a recording as long as `maxHold`. */
    readonly complete: boolean
    /** The recordings, those that were stopped included. The inbox counts as one with the name `webhooks`. */
    readonly recordings: readonly {
      readonly name: string
      /** The time up to which it is complete, in Unix ms; null if it is not known. */
      readonly through: number | null
      /** Whether event time waits for it: no other recording is further behind. */
      readonly isAwaited: boolean
      /** The number of its sources that are away alone: event time goes on without them, and processes hold them. */
      readonly behind: number
    }[]
  }
  /** Webhooks that are stored and not recorded yet: their number, and the size of their bodies in bytes. */
  readonly inbox: { readonly pending: number; readonly bytes: number }
  /** The reader that keeps recorders from appending, such as `consumer:billing`; null for none. */
  readonly pausedBy: string | null
}
