import type { Fence } from './fence.ts'
import type { LogStats, ReaderStats } from './stats.ts'

/** How much a log has stored. */
export interface LogUsage {
  /** Size of the entries, identities and states, in bytes. Free space within the file is not counted. */
  readonly bytes: number
  /** Size of the write-ahead log, in bytes; 0 for none. */
  readonly walBytes: number
  /** When the newest entry was recorded, in Unix ms; 0 for none yet. */
  readonly newest: number
  /** Whether entries may be deleted by their age: not while a jump of the clock is not confirmed. */
  readonly isTimeCertain: boolean
}

/** The state of retention that a process checks before it appends. */
export interface LogRoom extends LogUsage {
  /** Limit of the last recorder, in bytes; null before the first one. */
  readonly maxBytes: number | null
  /** The reader that needs the oldest entry, among those that hold retention; null for none. */
  readonly neededBy: string | null
}

/** Which entries to delete. */
export interface TrimLimit {
  /**
   * Only entries that were recorded before this time, in Unix ms. While the clock of the log was not confirmed, entries have a time that is too
   * early: see `ageLimit`. Default: any.
   */
  readonly recordedBefore?: number
  /** Deletes no more entries once their events have this size together, in bytes, about. Default: no limit. */
  readonly bytes?: number
  /** Maximum number of entries. A step may delete fewer. */
  readonly limit: number
}

/** Result of a step of {@link RetentionStore.trim}. */
export interface Trimmed {
  readonly deleted: number
  /** Whether there are no more entries to delete within the limit of time. */
  readonly isDone: boolean
  /** The reader that still needs the next entry to delete; null for none. */
  readonly blockedBy: string | null
}

/** The numbers of a log, read from one snapshot. */
export interface StoreStats extends Pick<
  LogStats,
  'entries' | 'bytes' | 'walBytes' | 'oldest' | 'newest' | 'streams' | 'inbox' | 'pausedBy'
> {
  /** Time of the log, in Unix ms. */
  readonly now: number
  readonly readers: readonly (Omit<ReaderStats, 'kind' | 'lag' | 'watermark'> & {
    /** Number of entries after the cursor that are not acknowledged. */
    readonly behind: number
  })[]
}

/** Deleting what a log no longer needs, in steps of a few milliseconds. */
export interface RetentionStore {
  /** Default of `maxBytes`. */
  readonly defaultMaxBytes: number
  /** How often recorders that append all the time look whether there is something to delete, in ms. 0 for after each append. */
  readonly interval: number
  usage(): Promise<LogUsage>
  /** The usage of the log, and the state of retention, for processes that append. */
  room(): Promise<LogRoom>
  /** The numbers of the log. They take some ms, however many entries it has. */
  stats(): Promise<StoreStats>
  /**
   * Deletes the oldest entries in one short transaction. Entries after the cursor of a reader stay, unless it is a process
   * that does not hold retention. Identities stay too, and
   * `positionAt('start')` moves on.
   */
  trim(limit: TrimLimit): Promise<Trimmed>
  /**
   * Deletes some of what nothing refers to: identities of deleted entries that are old enough (see `IDENTITY_LIMITS`), and the rows of
   * processes that were removed or built again. Resolves with whether there is more for now.
   */
  clean(): Promise<boolean>
  /**
   * Deletes all entries of a source that the log has, the dead letters and the webhooks of it, and what processes have
   * appended because of it, also from free space and from the write-ahead log. Identities, upstream positions and cursors
   * stay. Resolves with the number of deleted entries.
   *
   * It takes many short transactions. After a crash it has to be called again.
   */
  forget(source: string): Promise<number>
  /** Makes the write-ahead log short, if no reader prevents it. Called if `walBytes` is large. Leave it out if there is none. */
  truncateWal?(): Promise<void>
  /** Stores which reader keeps recorders from appending, null for none, and their `maxBytes`. */
  setPaused(reader: string | null, maxBytes: number): Promise<void>
  /**
   * Deletes a reader: its cursor, the state and the timers of a process ({@link clean} removes what they leave). Its
   * dead letters stay. The fence of its last owner is void. Without effect for an unknown one. Rejects with a
   * `LogInUseError` while an open log has claimed it, this one included.
   *
   * @param fence The fence of its owner, if the owner deletes it itself and keeps the claim. Rejects with a `FencedError`.
   */
  remove(reader: string, fence?: Fence): Promise<void>
}
