import { asyncScheduler, Subscription } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import { retryableOf } from '../../protocol/backoff.ts'
import { checkDuration, checkInteger, checkOptions } from '../../protocol/check.ts'
import { LogClosedError } from '../errors.ts'
import { wholeName } from '../consume/part-name.ts'
import type { LogUsage, RetentionStore, Trimmed } from '../store/retention-store.ts'

/** How long a log keeps its entries. Processes that only read a log need not set it: the recorder deletes. */
export interface RetentionOptions {
  /** Deletes entries that are older than the newest one by more than this, in ms. Default: no limit. */
  readonly maxAge?: number
  /**
   * Deletes the oldest entries above this size, in bytes: used pages of the file and its write-ahead log. Default 8 GiB; 256 MiB for a log in
   * memory.
   */
  readonly maxBytes?: number
}

/** Maximum number of entries that one step deletes. No other process writes meanwhile, so a store ends it after some ms. */
const STEP = 400

/** How often a paused recorder looks whether there is room, in ms. */
const PAUSED_INTERVAL = 1_000

/** The part of `maxBytes` that is left to the write-ahead log, which SQLite writes over at 16 MB. */
const WAL_SHARE = 1 / 8
const MAX_WAL_ROOM = 64 * 1024 * 1024

/** The part of `maxBytes` above it that is left to the output of processes while recorders pause. */
const PROCESS_RESERVE = 1 / 10

/** Returns the checked settings. Throws an ArgumentError for an invalid one. */
export function retentionSettings(options: RetentionOptions | undefined): RetentionOptions {
  checkOptions('retention', options, ['maxAge', 'maxBytes'])
  const { maxAge, maxBytes } = options ?? {}
  if (maxAge !== undefined) checkDuration('retention.maxAge', maxAge)
  if (maxBytes !== undefined) checkInteger('retention.maxBytes', maxBytes, 1)
  return { ...options }
}

/** Excess of a log over its limits. */
interface Excess {
  /** Entries that were recorded before this time, in Unix ms; undefined for none. */
  readonly recordedBefore: number | undefined
  /** Size beyond the limit, in bytes: the oldest entries have to be deleted, whatever their age. At most 0 if the log is not too large. */
  readonly bytes: number
  /** Whether the write-ahead log is to be emptied. */
  readonly isWalTooLarge: boolean
}

/** Returns the excess of a log over its limits. */
export function excessOf(
  { bytes, walBytes, newest, isTimeCertain }: LogUsage,
  maxBytes: number,
  maxAge: number | undefined,
): Excess {
  const walRoom = Math.min(MAX_WAL_ROOM, maxBytes * WAL_SHARE)
  return {
    recordedBefore: maxAge === undefined || !isTimeCertain ? undefined : newest - maxAge,
    bytes: bytes - (maxBytes - walRoom),
    isWalTooLarge: walBytes > walRoom,
  }
}

/**
 * Whether a process may append: while recorders pause, it uses a reserve. The process that needs the oldest entry always may, since
 * nothing is deleted before it has gone on.
 */
export async function hasRoom(store: RetentionStore, reader: string): Promise<boolean> {
  const { neededBy, ...usage } = await store.room()
  const maxBytes = usage.maxBytes ?? store.defaultMaxBytes
  return neededBy === reader || excessOf(usage, maxBytes, undefined).bytes <= maxBytes * PROCESS_RESERVE
}

/**
 * Deletes entries beyond the limits of a log, in steps between the appends of its recorders. It pauses the recorders
 * while the log is too large and a reader needs the oldest entry.
 */
export class Retention {
  readonly #store: RetentionStore
  readonly #options: RetentionOptions
  readonly #scheduler: SchedulerLike
  readonly #listeners = new Set<() => void>()
  #pausedBy: string | null = null
  /** Whether the store has what is in `#pausedBy`. An earlier recorder may have ended while it was paused. */
  #isPauseSaved = false
  #running: Promise<void> | undefined
  /** The step that is under way, or the last one. */
  #step: Promise<boolean> = Promise.resolve(false)
  /** When it began, by the scheduler. */
  #began = -Infinity
  #timer = Subscription.EMPTY
  #isStopped = false
  #failure: { readonly error: unknown } | undefined

  constructor(store: RetentionStore, options: RetentionOptions, scheduler: SchedulerLike = asyncScheduler) {
    this.#store = store
    this.#options = options
    this.#scheduler = scheduler
  }

  /** The reader that keeps recorders from appending; null for none. */
  get pausedBy(): string | null {
    return this.#pausedBy === null ? null : wholeName(this.#pausedBy)
  }

  /**
   * Calls the listener when {@link pausedBy} changes. Returns a function that removes it. Without a listener, nothing waits for
   * the end of a pause.
   */
  onPause(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#timer.unsubscribe()
    }
  }

  /**
   * Resolves after one step. The others follow by themselves. Soon after a step, the next one follows by itself too: see
   * {@link RetentionStore.interval}. Rejects once a step has failed for good: the log would grow without a limit, unnoticed.
   */
  async appended(): Promise<void> {
    // A wall clock that was set back does not make the wait longer.
    this.#began = Math.min(this.#began, this.#scheduler.now())
    const rest = this.#began + this.#store.interval - this.#scheduler.now()
    if (rest > 0) this.#runIn(rest)
    else this.#run()
    await this.#step
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /** Resolves when no step is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer.unsubscribe()
    await this.#running
  }

  #run(): void {
    if (this.#running !== undefined || this.#isStopped) return
    this.#timer.unsubscribe()
    this.#running = this.#steps().finally(() => {
      this.#running = undefined
      if (this.#pausedBy !== null) this.#runIn(PAUSED_INTERVAL)
    })
  }

  /** Runs after this time in ms, unless it runs before, or there is nothing to do then. */
  #runIn(pause: number): void {
    if (this.#running !== undefined || this.#isStopped || this.#listeners.size === 0 || !this.#timer.closed)
      return
    this.#timer = this.#scheduler.schedule(() => this.#run(), pause)
  }

  async #steps(): Promise<void> {
    do {
      this.#began = this.#scheduler.now()
      this.#step = this.#next().catch((error: unknown) => {
        // After a full disk, or beside another program's lock, the next append tries again.
        if (retryableOf(error) === false && !(error instanceof LogClosedError)) this.#failure ??= { error }
        return false
      })
    } while ((await this.#step) && !this.#isStopped)
  }

  /** Returns whether there is more to do. */
  async #next(): Promise<boolean> {
    const store = this.#store
    const { maxAge, maxBytes = store.defaultMaxBytes } = this.#options
    const { recordedBefore, bytes, isWalTooLarge } = excessOf(await store.usage(), maxBytes, maxAge)
    const isTooLarge = bytes > 0
    if (isWalTooLarge) await store.truncateWal?.()
    let trimmed: Trimmed = { deleted: 0, isDone: true, blockedBy: null }
    if (isTooLarge) trimmed = await store.trim({ bytes, limit: STEP })
    else if (recordedBefore !== undefined) trimmed = await store.trim({ recordedBefore, limit: STEP })
    await this.#setPaused(isTooLarge && trimmed.deleted === 0 ? trimmed.blockedBy : null, maxBytes)
    if (trimmed.deleted === 0) return false
    return (await store.clean()) || isTooLarge || !trimmed.isDone
  }

  async #setPaused(reader: string | null, maxBytes: number): Promise<void> {
    const isChanged = reader !== this.#pausedBy
    this.#pausedBy = reader
    if (isChanged) this.#isPauseSaved = false
    if (isChanged) for (const listener of this.#listeners) listener()
    if (!this.#isPauseSaved) await this.#store.setPaused(reader, maxBytes)
    this.#isPauseSaved = true
  }
}
