import type { LogClock, LogGap } from '../../protocol/event.ts'
import type { CopyStore } from './copy-store.ts'
import type { DeadLetterStore, NewDeadLetter } from './dead-letter-store.ts'
import type { Entry, Position } from './entry.ts'
import type { Fence } from './fence.ts'
import type { InboxStore } from './inbox-store.ts'
import type { NewEntry } from './new-entry.ts'
import type { RetentionStore } from './retention-store.ts'
import type { ProcessCommit, ProcessStore } from './process-store.ts'
import type { SharingStore } from './sharing-store.ts'

export type { Entry, Position } from './entry.ts'
export type { Fence } from './fence.ts'
export type { NewEntry } from './new-entry.ts'

/** The changes of one upstream stream that an append stores. */
export interface StreamAppend {
  /** The fence of the claim of the stream's name. */
  readonly fence: Fence
  /** The stream's upstream position in the log; null if it has none. Another one is refused with a `LogConflictError`. */
  readonly expect: string | null
  /** The upstream position after these entries. Default: it stays. */
  readonly position?: string
  /**
   * The entries, in order. The log skips an entry if it has one of the same identity that is at least as complete. The position of the
   * stream moves nevertheless.
   */
  readonly entries: readonly NewEntry[]
}

/** Maximum number of entries in one append, of all its streams together. It bounds how long other writers wait. */
export const MAX_APPEND_ENTRIES = 256

/** Maximum number of deliveries that one append marks as done. */
export const MAX_APPEND_DONE = 256

/** Maximum length of the events in one append as JSON, in characters. A single entry may be longer. */
export const MAX_APPEND_LENGTH = 4 * 1024 * 1024

/** Result of an append. */
export interface Appended {
  /** New entries. */
  readonly entries: number
  /** Number of entries that were skipped, since the log has them. */
  readonly duplicates: number
  /** Change of the wall clock; absent if nothing has changed. The log has an entry about it. */
  readonly clock?: LogClock
  /** By how much the wall clock is ahead of the time of the log, in ms, while it is not believed; negative if it is behind. Otherwise 0. */
  readonly ahead: number
  /** The end of the log after the appended entries. */
  readonly end: Position
}

/** Length of the events, payloads or states after which a page of any kind ends, in characters. */
export const MAX_PAGE_LENGTH = 1024 * 1024

/** A part of the log, in order. */
export interface Page {
  readonly entries: readonly Entry[]
  /** The length of each entry's event as JSON, in characters. */
  readonly lengths: readonly number[]
  /** The position after the last entry that was looked at, whether its type was wanted or not. Read on from here. */
  readonly position: Position
  /** Whether no more entries followed when the page was read. */
  readonly isEnd: boolean
  /**
   * Entries after the position were deleted. The only entry of the page is a `log.gap`, whatever types were asked for, and
   * reading goes on after it.
   */
  readonly gap?: LogGap
}

/** Which entries to read. */
export interface ReadOptions {
  /** Maximum number of entries. The page may have fewer and not be the last. */
  readonly limit: number
  /** Only entries of these types. Default: all. */
  readonly types?: readonly string[] | undefined
  /** Reads only up to this position, which is the end of the log then. Default: all. */
  readonly until?: Position | undefined
  /** Only entries of the sources of this partition. Default: all. */
  readonly partition?: number | undefined
  /** Other readers of this open log read about the same now: a store may read it once for all of them. Default false. */
  readonly isCommon?: boolean
}

/** How far a reader has come. */
export interface ReaderState {
  /** Everything up to here was acknowledged. */
  readonly cursor: Position
  /** Acknowledged positions after the cursor, with unacknowledged ones between. A store keeps their order. */
  readonly acknowledged: readonly Position[]
  /** Whether this is a copy, and the state itself is stored beside the effects of the consumer, outside of the log. Default false. */
  readonly isCopy?: boolean
}

/** A reader as it is stored. */
export interface StoredReader extends ReaderState {
  /** What the last commit of a process said; undefined for another reader. */
  readonly process?: { readonly checkpoint: string; readonly holdsRetention: boolean } | undefined
}

/** One step of a reader. Serialisable, at most {@link MAX_COMMIT_BYTES}. */
export interface Commit extends ReaderState {
  /** The cursor of the reader before; null to create it. Another one is refused with a `LogConflictError`. */
  readonly expect: Position | null
  /** Entries that the reader could not handle, by their positions: the store copies them, so a commit stays small. Default: none. */
  readonly deadLetters?: readonly NewDeadLetter[]
  /** Positions of redelivered dead letters that are handled. Default: none. */
  readonly redelivered?: readonly Position[]
  /** State and timers of a process. Absent if the reader is not a process. */
  readonly process?: ProcessCommit
  /**
   * Appended in the same transaction, which survives a power cut then. At most {@link MAX_APPEND_ENTRIES}. Default: none.
   */
  readonly entries?: readonly NewEntry[]
}

/** Maximum size of a {@link Commit} as JSON, in bytes. */
export const MAX_COMMIT_BYTES = 512 * 1024

/** Start of reading: the first entry, the end of the log, or the first entry that was recorded at this time or later (Unix ms). */
export type StartAt = 'start' | 'end' | { readonly time: number }

/**
 * The storage of a log. `memoryStore()`, `sqliteStore(file)` and `natsStore(…)` implement it and pass one conformance suite; users call
 * `openLog`. `docs/reference/stores.md` says how to write one.
 *
 * A rejected write has changed nothing. All methods reject with a `LogClosedError` after `close`.
 *
 * A store gets only valid arguments, since `openLog` checks them in front of it: numbers, names, texts, the limits of appends and commits.
 * Positions are the store's own, so it checks them.
 */
export interface LogStore {
  /** Name of the log, for errors. */
  readonly name: string
  /** Webhooks that are stored and not recorded yet. */
  readonly inbox: InboxStore
  /**
   * Claims a name. Rejects with a `LogInUseError` that names the owner while another open log holds it; with `wait`, waits
   * until it is free or rejects with the reason of the signal. The same open log may claim a name again: the token is
   * raised, and the earlier fence is void.
   */
  claim(
    name: string,
    options?: {
      /** Waits until the name is free, or this signal is aborted. Default: a name that is held is an error. */
      readonly wait?: AbortSignal
    },
  ): Promise<Fence>
  /** Gives a name up, which makes the fence void. A fence that is void already is ignored. */
  release(fence: Fence): Promise<void>
  /**
   * Appends the changes of streams, in one transaction that survives a power cut. Rejects with a `FencedError`, or a
   * `LogConflictError` that names the stream. `openLog` rejects with a `LogValueError` for more than {@link MAX_APPEND_ENTRIES},
   * {@link MAX_APPEND_LENGTH} or {@link MAX_APPEND_DONE}.
   *
   * @param done Ids of deliveries in the {@link inbox} that are done with it. Unknown ones are ignored. The caller holds the claim under
   * which the inbox is recorded, and `appends` has its fence. Default: none.
   */
  append(appends: readonly StreamAppend[], done?: readonly string[]): Promise<Appended>
  /** The upstream positions of streams; null for a stream without one. */
  streamPositions(names: readonly string[]): Promise<readonly (string | null)[]>
  /** Reads on after a position. Rejects with a `LogPositionError`. */
  read(after: Position, options: ReadOptions): Promise<Page>
  /**
   * Resolves once there may be entries after this position, or dead letters to redeliver. Rejects with the signal's reason.
   *
   * @param redelivery The reader whose dead letters count, and the last redelivery number that it knows. Default: dead letters do not count.
   * @param partition The partition whose entries count. After a while, entries of other partitions count too, so that reading moves the
   * position past them. Default: all count.
   */
  wait(
    after: Position,
    signal: AbortSignal,
    redelivery?: { readonly reader: string; readonly after: number },
    partition?: number,
  ): Promise<void>
  /** The position at which to begin. */
  positionAt(start: StartAt): Promise<Position>
  /** A reader; undefined for an unknown one. */
  reader(name: string): Promise<StoredReader | undefined>
  /**
   * Moves the reader of the fence's name, in one transaction with everything else that the commit has. Rejects with a
   * `FencedError`, a `LogConflictError` or a `LogPositionError`. `openLog` rejects with a `LogValueError` for more than
   * {@link MAX_COMMIT_BYTES}, or than an append may have.
   */
  commit(fence: Fence, commit: Commit): Promise<void>
  /** Entries that readers could not handle. */
  readonly deadLetters: DeadLetterStore
  /** Deletes what the log no longer needs. */
  readonly retention: RetentionStore
  /** The state and the timers of processes. */
  readonly processes: ProcessStore
  /** Divides work among the open logs. */
  readonly sharing: SharingStore
  /** What `migrateLog` needs of it. Default: the log cannot be copied as a whole. */
  readonly copying?: CopyStore
  /**
   * Prepares for `close`: from now on, all calls together wait for at most a few seconds for a program that keeps others from writing.
   * Calls that could not save by then reject. Leave it out if no program can do so.
   */
  prepareClose?(): void
  /** Gives up every claim. Pending waits reject. */
  close(): Promise<void>
}
