import type { Position, ReaderState } from '../store/contract.ts'
import type { WallAndMonotonic } from '../store/log-clock.ts'
import { isOfSource, isWebhookOfSource } from '../state/of-source.ts'
import type { RetentionStore, StoreStats } from '../store/retention-store.ts'
import type { MemoryClaims } from './claims.ts'
import type { MemoryDeadLetters } from './dead-letters.ts'
import type { Processes } from '../state/processes.ts'
import type { MemoryPartitions } from './partitions.ts'

/** The part of an inbox that retention needs. */
interface ForgettingInbox {
  readonly totals: StoreStats['inbox']
  forget(isForgotten: (payload: string) => boolean): void
}

/** Dependencies of the retention of a log in memory. */
export interface RetainedContents {
  readonly entries: MemoryPartitions
  readonly readers: Map<string, { readonly cursor: Position; readonly json: string }>
  readonly claims: MemoryClaims
  readonly processes: Processes
  /** Calls that wait for changes of a process, by its name. */
  readonly waitingForChanges: ReadonlyMap<string, { settle(result: () => true): void }>
  readonly streams: ReadonlyMap<string, string>
  readonly deadLetters: MemoryDeadLetters
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
export function memoryRetention(contents: RetainedContents, run: MemoryRunner): RetentionStore {
  const { entries, readers, streams, claims, deadLetters, inbox, clocks, processes } = contents
  const usage = () => {
    const { bytes, newest, isTimeCertain } = entries
    return { bytes, walBytes: 0, newest, isTimeCertain }
  }
  /** The cursors of the readers for which retention waits. */
  const cursors = () => {
    const all = Array.from(readers, ([name, { cursor }]) => [name, cursor] as const)
    return new Map(all.filter(([name]) => processes.process(name)?.holdsRetention ?? true))
  }
  const readerStats = (): StoreStats['readers'] => {
    const counts = deadLetters.counts()
    return Array.from(readers, ([name, { cursor, json }]) => {
      const { acknowledged }: ReaderState = JSON.parse(json)
      const { count, oldest } = entries.after(cursor)
      return {
        name,
        cursor,
        behind: Math.max(0, count - acknowledged.length),
        oldestUnacknowledged: oldest,
        acknowledgedAhead: acknowledged.length,
        deadLetters: counts.get(name) ?? 0,
        holdsRetention: processes.process(name)?.holdsRetention ?? true,
        isPaused: claims.isHeld({ name, token: processes.pausedToken(name) ?? -1 }),
        owner: claims.ownerOf(name),
      }
    })
  }
  return {
    defaultMaxBytes: 256 * 1024 ** 2,
    interval: 0,
    stats: () =>
      run.read(() => ({
        now: entries.now(clocks),
        entries: entries.size,
        bytes: entries.bytes,
        walBytes: 0,
        oldest: entries.size === 0 ? null : entries.oldest,
        newest: entries.size === 0 ? null : entries.newest,
        readers: readerStats(),
        streams: Array.from(streams, ([name, position]) => ({ name, position, owner: claims.ownerOf(name) })),
        inbox: inbox.totals,
        pausedBy: contents.pausedBy,
      })),
    usage: () => run.read(usage),
    room: () =>
      run.read(() => ({
        ...usage(),
        maxBytes: contents.maxBytes,
        neededBy: entries.neededBy(cursors()),
      })),
    trim: (limit) => run.write(() => entries.trim(limit, cursors())),
    // An earlier generation of a process leaves nothing behind. Nothing refers to what is deleted, so it is no write for `faults`.
    clean: () => run.read(() => !entries.trimIdentities()),
    forget: (source) =>
      run.write(() => {
        deadLetters.forget((entry) => isOfSource(entry, source))
        inbox.forget((payload) => isWebhookOfSource(payload, source))
        return entries.forget(({ json }) => isOfSource(json, source))
      }),
    setPaused: (reader, maxBytes) =>
      run.write(() => {
        contents.maxBytes = maxBytes
        contents.pausedBy = reader
      }),
    remove: (reader, fence) =>
      run.write(() => {
        if (fence === undefined) claims.revoke(reader)
        else claims.check(fence)
        readers.delete(reader)
        processes.drop(reader)
        contents.waitingForChanges.get(reader)?.settle(() => true)
      }),
  }
}
