import type { NameRange, Timer, TimerChange, TimerClock } from '../../streams/timers.ts'
import type { Position } from './entry.ts'
import type { Fence } from './fence.ts'

/** The state of one key after a commit. */
export interface StateChange {
  readonly key: string
  /** The state as JSON; null if it was removed. */
  readonly state: string | null
}

/** The part of a commit that makes a reader a process. */
export interface ProcessCommit {
  /** Checkpoint of the process, as text. */
  readonly checkpoint: string
  /**
   * Drops all state and timers before this commit, and begins a new generation: positions of the earlier one are refused
   * from then on. Default false.
   */
  readonly reset?: boolean
  /** Whether retention waits for the process, from this commit on. Default true. */
  readonly holdsRetention?: boolean
  /** Changed states in the order of their last change. Each is a change of its own, with its own position. */
  readonly state: readonly StateChange[]
  readonly timers: readonly TimerChange[]
}

/** The change of one key, the latest one. */
export interface StoredChange extends StateChange {
  /** The position after this change. */
  readonly position: Position
}

/** Changes of a process, in order. Only the latest of each key is there. */
export interface ChangesPage {
  readonly changes: readonly StoredChange[]
  /** The position after the last change. Read on from here. */
  readonly position: Position
  /** Whether there was nothing more when it was read. */
  readonly isEnd: boolean
}

/** Which changes to read. */
export interface ChangesOptions {
  /** Maximum number of changes. The page may have fewer and not be the last. */
  readonly limit: number
  /** Reads only changes up to here, a position of the same generation. Default: all. */
  readonly until?: Position
  /** Only keys that have a state. Forgotten keys are not missed then, and each position of this generation is good. */
  readonly present?: boolean
  /** The length of the states after which a page ends, in characters. Default 1,048,576. */
  readonly maxLength?: number
}

/** Which states to read, in the order of their keys as they are stored. */
export interface RangeOptions {
  /** Only keys that begin with this text. It must be well-formed. */
  readonly prefix: string
  /** Only keys after this one, which need not have a state. Default: all. */
  readonly after?: string | undefined
  /** Maximum number of states. */
  readonly limit: number
  /** The length of the states after which the page ends, in characters. Default 1,048,576. */
  readonly maxLength?: number
  /** The position of the first page. A state that was built again since is refused. Default: the state as it is. */
  readonly since?: Position | undefined
}

/** States of a process by key, as of one moment. */
export interface RangePage {
  readonly states: readonly { readonly key: string; readonly state: string }[]
  /** The position of the process at this moment. */
  readonly position: Position
  /** Whether no key follows. */
  readonly isEnd: boolean
}

/** Which timers to read. */
export interface TimersOptions {
  /** The clock of the timers. */
  readonly clock: TimerClock
  /** Only timers that are due at this time or before, in Unix ms. */
  readonly until: number
  /** Only timers after this place in the order of `compareTimers`, which need not be that of a timer. */
  readonly after?: Pick<Timer, 'due' | 'key' | 'name'> | undefined
  /** Maximum number of timers. */
  readonly limit: number
}

/**
 * The state and the timers of processes, each under the name of its reader, which commits change.
 *
 * A position of a process is opaque as one of the log. It carries the epoch of the log and the generation of the process. A
 * reader that has all changes up to a position, and applies those after it, has the same state as the process: keys that
 * changed several times come once, with the last state, and removed keys with null. The log forgets removed keys, but the last
 * 10,000 of a process. A position before a forgotten one is refused; one before the first change is not.
 */
export interface ProcessStore {
  /** The states of keys, as JSON; null if there is none. */
  states(name: string, keys: readonly string[]): Promise<readonly (string | null)[]>
  /** Timers, in the order of `compareTimers`: fewer than the limit only if there are no more. */
  timers(name: string, options: TimersOptions): Promise<readonly Timer[]>
  /** Timers of a key whose names are in a range, in the order of their names as they are stored: at most so many. */
  keyTimers(name: string, key: string, range: NameRange, limit: number): Promise<readonly Timer[]>
  /** The position of a process before its first change. It is the same for each of its generations. */
  start(): Promise<Position>
  /** The position of a process after its last change. */
  end(name: string): Promise<Position>
  /** Reads changes after a position. Rejects with a `LogPositionError`. */
  changes(name: string, after: Position, options: ChangesOptions): Promise<ChangesPage>
  /**
   * Reads states in the order of their keys. Pages are of different moments: what changes between them is among the changes
   * after the position of the first one. Rejects with a `LogPositionError` for `since`.
   */
  range(name: string, options: RangeOptions): Promise<RangePage>
  /** Resolves once `changes` after this position is not empty, or refused. Rejects with the signal's reason. */
  wait(name: string, after: Position, signal: AbortSignal): Promise<void>
  /**
   * Reports that the process of this fence waits. Its next commit ends the wait. Without effect before its first commit.
   * Rejects with a `FencedError`.
   */
  pause(fence: Fence): Promise<void>
}

/** The methods of a {@link ProcessStore} that read states as JSON texts, by the name of the reader: `process:` and the name of the process. */
export type StoredStates = Pick<ProcessStore, 'states' | 'start' | 'end' | 'changes' | 'range' | 'wait'>

/** The number of removed keys that a log remembers of each process. */
export const MAX_TOMBSTONES = 10_000
