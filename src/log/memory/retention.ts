import { checkInteger } from '../../protocol/check.ts'
import type { Fence, Position, ReaderState } from '../store/contract.ts'
import { LogUnsupportedError } from '../errors.ts'
import type { WallAndMonotonic } from '../store/log-clock.ts'
import { isOfSource, isWebhookOfSource } from '../of-source.ts'
import type {
  LogRoom,
  LogUsage,
  RetentionStore,
  StoreStats,
  Trimmed,
  TrimLimit,
} from '../store/retention-store.ts'
import type { Claims } from './claims.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Processes } from '../state/processes.ts'
import type { Partitions } from './partitions.ts'

/** The part of an inbox that retention needs. */
interface ForgettingInbox {
  readonly totals: StoreStats['inbox']
  forget(isForgotten: (payload: string) => boolean): void
}

/** Dependencies of the retention of a log in memory. */
export interface RetainedContents {
  readonly entries: Partitions
  readonly readers: Map<string, { readonly cursor: Position; readonly json: string }>
  readonly claims: Claims
  readonly processes: Processes
  /** Calls that wait for changes of a process, by its name. */
  readonly waitingForChanges: ReadonlyMap<string, { settle(result: () => true): void }>
  readonly streams: ReadonlyMap<string, string>
  readonly deadLetters: DeadLetters
  readonly inbox: ForgettingInbox
  readonly clocks: WallAndMonotonic
  pausedBy: string | null
  /** Limit of the last recorder, in bytes; null before the first one. */
  maxBytes: number | null
}

/** How a call is run. */
export interface MemoryRunner {
  read<Result>(effect: () => Result): Promise<Result>
  write<Result>(effect: () => Result): Promise<Result>
}

/** Retention of a log in memory. */
export class MemoryRetention implements RetentionStore {
  readonly defaultMaxBytes = 256 * 1024 ** 2
  readonly interval = 0
  readonly #contents: RetainedContents
  readonly #run: MemoryRunner

  constructor(contents: RetainedContents, run: MemoryRunner) {
    this.#contents = contents
    this.#run = run
  }

  stats(): Promise<StoreStats> {
    return this.#run.read(() => {
      const { entries, readers, streams, claims, deadLetters, inbox, clocks, pausedBy, processes } =
        this.#contents
      const counts = deadLetters.counts()
      return {
        now: entries.now(clocks),
        entries: entries.size,
        bytes: entries.bytes,
        walBytes: 0,
        oldest: entries.size === 0 ? null : entries.oldest,
        newest: entries.size === 0 ? null : entries.newest,
        readers: Array.from(readers, ([name, { cursor, json }]) => {
          const { acknowledged }: ReaderState = JSON.parse(json)
          const { count, oldest } = entries.after(cursor)
          return {
            name,
            cursor,
            behind: Math.max(0, count - acknowledged.length),
            oldestUnacknowledged: oldest,
            acknowledgedAhead: acknowledged.length,
            deadLetters: counts.get(name) ?? 0,
            holdsRetention: processes.holdsRetention(name),
            isPaused: claims.isHeld({ name, token: processes.pausedToken(name) ?? -1 }),
            owner: claims.ownerOf(name),
          }
        }),
        streams: Array.from(streams, ([name, position]) => ({ name, position, owner: claims.ownerOf(name) })),
        inbox: inbox.totals,
        pausedBy,
      }
    })
  }

  async backup(): Promise<void> {
    throw new LogUnsupportedError('a log in memory cannot be copied to a file: use sqliteLog, or log.export')
  }

  usage(): Promise<LogUsage> {
    return this.#run.read(() => {
      const { bytes, newest, isTimeCertain } = this.#contents.entries
      return { bytes, walBytes: 0, newest, isTimeCertain }
    })
  }

  room(): Promise<LogRoom> {
    return this.#run.read(() => {
      const { entries, maxBytes } = this.#contents
      const { bytes, newest, isTimeCertain } = entries
      return {
        bytes,
        walBytes: 0,
        newest,
        isTimeCertain,
        maxBytes,
        neededBy: entries.neededBy(this.#cursors),
      }
    })
  }

  isTrimmed(): Promise<boolean> {
    return this.#run.read(() => this.#contents.entries.isTrimmed)
  }

  async trim(limit: TrimLimit): Promise<Trimmed> {
    checkInteger('limit', limit.limit, 1)
    return this.#run.write(() => {
      return this.#contents.entries.trim(limit, this.#cursors)
    })
  }

  trimIdentities(): Promise<boolean> {
    return this.#run.write(() => this.#contents.entries.trimIdentities())
  }

  async truncateWal(): Promise<void> {}

  forget(source: string): Promise<number> {
    return this.#run.write(() => {
      const { entries, deadLetters, inbox } = this.#contents
      deadLetters.forget((entry) => isOfSource(entry, source))
      inbox.forget((payload) => isWebhookOfSource(payload, source))
      return entries.forget(({ json }) => isOfSource(json, source))
    })
  }

  setPaused(reader: string | null, maxBytes: number): Promise<void> {
    return this.#run.write(() => {
      this.#contents.maxBytes = maxBytes
      this.#contents.pausedBy = reader
    })
  }

  remove(reader: string, fence?: Fence): Promise<void> {
    return this.#run.write(() => {
      if (fence === undefined) this.#contents.claims.revoke(reader)
      else this.#contents.claims.check(fence)
      this.#contents.readers.delete(reader)
      this.#contents.processes.drop(reader)
      this.#contents.waitingForChanges.get(reader)?.settle(() => true)
    })
  }

  /** The cursors of the readers for which retention waits. */
  get #cursors(): ReadonlyMap<string, Position> {
    const { readers, processes } = this.#contents
    const cursors = Array.from(readers, ([name, { cursor }]) => [name, cursor] as const)
    return new Map(cursors.filter(([name]) => processes.holdsRetention(name)))
  }
}
