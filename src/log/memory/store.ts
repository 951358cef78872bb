import { checkFunction, checkInteger, checkOptions, checkText } from '../../protocol/check.ts'
import type {
  Appended,
  Commit,
  Fence,
  LogStore,
  Page,
  Position,
  ReaderState,
  ReadOptions,
  StartAt,
  StoredReader,
  StreamAppend,
} from '../store/contract.ts'
import type { DeadLetterStore } from '../store/dead-letter-store.ts'
import { LogClosedError, LogConflictError } from '../errors.ts'
import { clocksOf } from '../store/log-clock.ts'
import type { WallAndMonotonic } from '../store/log-clock.ts'
import { inboxLimits } from '../store/inbox-store.ts'
import type { InboxLimits, InboxStore } from '../store/inbox-store.ts'
import { MemoryClaims } from './claims.ts'
import { MemoryDeadLetters } from './dead-letters.ts'
import { MemoryInbox } from './inbox.ts'
import { MemoryPartitions } from './partitions.ts'
import { memoryRetention } from './retention.ts'
import { Processes } from '../state/processes.ts'
import type { RetentionStore } from '../store/retention-store.ts'
import { WaitingCalls } from './waiting-calls.ts'
import { MemoryWorkGroups } from './work-groups.ts'
import type { ProcessStore } from '../store/process-store.ts'
import type { SharingStore } from '../store/sharing-store.ts'

/** Settings of {@link memoryStore}. */
export interface MemoryStoreOptions {
  /**
   * Parts into which the sources are divided, 1 to 1,000. Default 1.
   *
   * With more than one, sources alternate in another order than that of the appends; the entries of each source keep theirs.
   */
  readonly partitions?: number
  /** Name of this open log in the `LogInUseError` of others. Default: a number. */
  readonly owner?: string
  /** Unix time in ms, for `recorded`. Default `Date.now`. */
  readonly clock?: () => number
  /** Webhooks that are stored and not recorded yet: `maxDeliveries`, default 10,000, and the size of their bodies, `maxBytes`, default 256 MiB. */
  readonly inbox?: InboxLimits
}

/** An open log in memory. */
export interface MemoryStore extends LogStore {
  /**
   * Opens the same log once more, as another process opens the same file. The log is there as long as one of its stores can be reached,
   * open or closed.
   *
   * @param options `owner`, as in {@link MemoryStoreOptions}.
   * @throws {ArgumentError} for an option that cannot be right.
   */
  connect(options?: Pick<MemoryStoreOptions, 'owner'>): MemoryStore
}

/** Hooks into the calls of one open log, for tests. */
interface Hooks {
  /** Awaited before and after the effect of each call, as a remote store is. Default: calls resolve in microtasks. */
  readonly latency?: () => PromiseLike<unknown>
  /**
   * Called before and after the effect of each write. An error that it throws rejects the write. If it throws before the effect, nothing
   * was written; if after, everything was, as when the process crashes before the writer gets the result.
   */
  readonly faults?: (write: StoreWrite, step: 'before' | 'after') => void
}

/** Settings of {@link simulatedStore}. */
export interface SimulatedStoreOptions extends MemoryStoreOptions, Hooks {}

/** Settings of one more open log of {@link simulatedStore}. */
export type SimulatedConnection = Pick<SimulatedStoreOptions, 'owner' | keyof Hooks>

/** The writes of a log. */
export type StoreWrite = 'claim' | 'release' | 'append' | 'commit' | 'deadLetters' | 'put' | 'retention'

/** An open log in memory that can be delayed, failed and killed. */
export interface SimulatedStore extends MemoryStore {
  connect(options?: SimulatedConnection): SimulatedStore
  /**
   * Frees the claims of this open log without its knowledge, as when its process was killed, or was suspended and lost its locks. It
   * is fenced once another open log claims their names.
   */
  loseClaims(): void
}

const LOG = 'the log in memory'

/**
 * A log in memory: for tests, and for events that need not survive the process.
 *
 * @throws {ArgumentError} for an option that cannot be right.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkOptions('options', options, ['partitions', 'owner', 'clock', 'inbox'])
  return simulatedStore(options)
}

/**
 * A log in memory for the tests of this package, which delay, fail and kill it.
 *
 * @internal
 */
export function simulatedStore(options: SimulatedStoreOptions = {}): SimulatedStore {
  const { partitions = 1, clock = Date.now, inbox, ...connection } = options
  checkInteger('partitions', partitions, 1, 1_000)
  checkFunction('clock', clock)
  const clocks = clocksOf(clock, () => performance.now())
  return connect(new Contents(partitions, clocks, inboxLimits(inbox)), connection)
}

/** The stored log, which all open logs share. */
class Contents {
  readonly claims = new MemoryClaims(LOG)
  readonly groups = new MemoryWorkGroups<OpenMemoryLog>(LOG)
  readonly entries: MemoryPartitions
  /** Calls that wait for entries. */
  readonly waiting = new WaitingCalls<OpenMemoryLog, true>()
  readonly streams = new Map<string, string>()
  readonly processes: Processes
  /** Calls that wait for changes of a process, by its name. */
  readonly waitingForChanges = new Map<string, WaitingCalls<OpenMemoryLog, true>>()
  /** JSON, so that a reader and the log never share a value. */
  readonly readers = new Map<string, { readonly cursor: Position; readonly json: string }>()
  readonly deadLetters: MemoryDeadLetters
  readonly inbox: MemoryInbox<OpenMemoryLog>
  readonly clocks: WallAndMonotonic
  /** The reader that keeps recorders from appending. */
  pausedBy: string | null = null
  maxBytes: number | null = null
  connections = 0

  constructor(partitions: number, clocks: WallAndMonotonic, inbox: Required<InboxLimits>) {
    this.entries = new MemoryPartitions(LOG, partitions)
    this.deadLetters = new MemoryDeadLetters(this.entries)
    this.inbox = new MemoryInbox(inbox)
    this.processes = new Processes(LOG, this.entries.epoch)
    this.clocks = clocks
  }
}

function connect(contents: Contents, options: SimulatedConnection): SimulatedStore {
  contents.connections += 1
  const {
    owner = `memory log ${contents.connections}`,
    latency = async () => {},
    faults = () => {},
  } = options
  checkText('owner', owner)
  return new OpenMemoryLog(contents, { owner, latency, faults })
}

class OpenMemoryLog implements SimulatedStore {
  readonly name = LOG
  readonly processes: ProcessStore
  readonly owner: string
  readonly inbox: InboxStore
  readonly retention: RetentionStore
  readonly #contents: Contents
  readonly #latency: () => PromiseLike<unknown>
  readonly #faults: (write: StoreWrite, step: 'before' | 'after') => void
  readonly deadLetters: DeadLetterStore
  readonly sharing: SharingStore
  #isClosed = false

  constructor(contents: Contents, { owner, latency, faults }: Required<SimulatedConnection>) {
    this.#contents = contents
    this.owner = owner
    this.#latency = latency
    this.#faults = faults
    this.deadLetters = this.#deadLetterStore(contents)
    this.inbox = this.#inbox(contents)
    this.retention = memoryRetention(contents, {
      read: (effect) => this.#call(effect),
      write: (effect) => this.#write('retention', effect),
    })
    this.processes = this.#processStore(contents)
    this.sharing = this.#sharingStore(contents)
  }

  connect(options: SimulatedConnection = {}): SimulatedStore {
    checkOptions('options', options, ['owner', 'latency', 'faults'])
    return connect(this.#contents, options)
  }

  loseClaims(): void {
    this.#contents.claims.lose(this)
    this.#contents.groups.lose(this)
  }

  claim(name: string, { wait }: { readonly wait?: AbortSignal } = {}): Promise<Fence> {
    return this.#write('claim', () => this.#contents.claims.claim(name, this, wait))
  }

  async release(fence: Fence): Promise<void> {
    await this.#write('release', () => this.#contents.claims.release(fence, this))
  }

  append(appends: readonly StreamAppend[], done: readonly string[] = []): Promise<Appended> {
    const added = appends.flatMap((append) => append.entries)
    return this.#write('append', () => {
      const { claims, entries, inbox, waiting, streams, clocks } = this.#contents
      for (const { fence } of appends) claims.check(fence)
      const moved = new Map<string, string>()
      for (const { fence, expect, position } of appends) {
        const { name } = fence
        if ((moved.get(name) ?? streams.get(name) ?? null) !== expect) throw new LogConflictError(LOG, name)
        if (position !== undefined) moved.set(name, position)
      }
      const appended = entries.append(added, clocks)
      for (const [name, position] of moved) streams.set(name, position)
      inbox.done(done)
      if (appended.entries > 0) waiting.settle(() => true)
      return { ...appended, duplicates: added.length - appended.entries, end: entries.end }
    })
  }

  streamPositions(names: readonly string[]): Promise<readonly (string | null)[]> {
    const { streams } = this.#contents
    return this.#call(() => names.map((name) => streams.get(name) ?? null))
  }

  read(after: Position, options: ReadOptions): Promise<Page> {
    return this.#call(() => this.#contents.entries.read(after, options))
  }

  wait(
    after: Position,
    signal: AbortSignal,
    redelivery?: { readonly reader: string; readonly after: number },
  ): Promise<void> {
    const { entries, waiting, deadLetters } = this.#contents
    return this.#call(async () => {
      const isDue = redelivery !== undefined && deadLetters.hasRedelivery(redelivery.reader, redelivery.after)
      if (!isDue && !entries.hasMore(after)) await waiting.add(this, signal)
    })
  }

  positionAt(start: StartAt): Promise<Position> {
    return this.#call(() => this.#contents.entries.positionAt(start))
  }

  reader(name: string): Promise<StoredReader | undefined> {
    return this.#call(() => {
      const { readers, processes } = this.#contents
      const stored = readers.get(name)
      if (stored === undefined) return undefined
      const state: ReaderState = JSON.parse(stored.json)
      return { ...state, process: processes.process(name) }
    })
  }

  async commit(fence: Fence, commit: Commit): Promise<void> {
    const { name } = fence
    const { expect, cursor, acknowledged, isCopy, process } = commit
    const { deadLetters = [], redelivered = [], entries: added = [] } = commit
    const state: ReaderState = { cursor, acknowledged, ...(isCopy && { isCopy }) }
    const json = JSON.stringify(state)
    const failed = deadLetters.map(({ position }) => position)
    await this.#write('commit', () => {
      const { claims, entries, readers, deadLetters: stored, processes, clocks, ...waits } = this.#contents
      claims.check(fence)
      if ((readers.get(name)?.cursor ?? null) !== expect) throw new LogConflictError(LOG, name)
      for (const position of [cursor, ...acknowledged, ...failed, ...redelivered]) entries.check(position)
      readers.set(name, { cursor, json })
      for (const deadLetter of deadLetters) stored.put(name, deadLetter, entries.now(clocks))
      for (const position of redelivered) stored.remove(name, position)
      if (process !== undefined) {
        processes.commit(name, process)
        waits.waitingForChanges.get(name)?.settle(() => true)
      }
      if (entries.append(added, clocks).entries > 0) waits.waiting.settle(() => true)
    })
  }

  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      const { claims, groups, inbox, waiting, waitingForChanges } = this.#contents
      groups.close(this, new LogClosedError(LOG))
      for (const calls of [waiting, inbox.waiting, ...waitingForChanges.values()]) {
        calls.reject(this, new LogClosedError(LOG))
      }
      claims.close(this, new LogClosedError(LOG))
    }
    await this.#latency()
  }

  #deadLetterStore({ deadLetters, entries, waiting }: Contents): DeadLetterStore {
    const change = (which: Position, effect: () => number) =>
      this.#write('deadLetters', () => {
        if (which !== 'all') entries.check(which)
        return effect()
      })
    return {
      list: (reader, after, limit) => this.#call(() => deadLetters.list(reader, after, limit)),
      counts: () => this.#call(() => deadLetters.counts()),
      redeliver: (reader, which) =>
        change(which, () => {
          const count = deadLetters.redeliver(reader, which)
          if (count > 0) waiting.settle(() => true)
          return count
        }),
      remove: (reader, which) => change(which, () => deadLetters.remove(reader, which)),
      redeliveries: (reader, after, limit) =>
        this.#call(() => deadLetters.redeliveries(reader, after, limit)),
    }
  }

  #inbox({ inbox, entries, clocks }: Contents): InboxStore {
    return {
      put: ({ id, timestamp }, json) =>
        this.#write('put', () => inbox.put({ id, timestamp, json }, entries.now(clocks))),
      isFull: (id) => inbox.isFull(id),
      pending: (after, limit) => this.#call(() => inbox.pending(after, limit)),
      wait: (after, signal) =>
        this.#call(async () => {
          if (!inbox.hasMore(after)) await inbox.waiting.add(this, signal)
        }),
    }
  }

  #processStore({ claims, processes, waitingForChanges }: Contents): ProcessStore {
    return {
      states: (name, keys) => this.#call(() => processes.states(name, keys)),
      timers: (name, options) => this.#call(() => processes.timers(name, options)),
      keyTimers: (name, ...of) => this.#call(() => processes.keyTimers(name, ...of)),
      start: () => this.#call(() => processes.positions.start),
      end: (name) => this.#call(() => processes.end(name)),
      changes: (name, after, options) => this.#call(() => processes.changes(name, after, options)),
      range: (name, options) => this.#call(() => processes.range(name, options)),
      wait: (name, after, signal) =>
        this.#call(async () => {
          while (!processes.hasMore(name, after)) {
            const calls = waitingForChanges.get(name) ?? new WaitingCalls<OpenMemoryLog, true>()
            waitingForChanges.set(name, calls)
            await calls.add(this, signal)
          }
        }),
      pause: (fence) =>
        this.#write('commit', () => {
          claims.check(fence)
          processes.pause(fence)
        }),
    }
  }

  #sharingStore({ entries, groups }: Contents): SharingStore {
    return {
      partitions: () => this.#call(() => entries.sources),
      share: async function* (this: OpenMemoryLog, group: string, parts: number, signal: AbortSignal) {
        await this.#call(() => {})
        yield* groups.share(group, parts, this, signal)
      }.bind(this),
    }
  }

  /** One change of the log. Its effect is all there or not at all. */
  #write<Result>(write: StoreWrite, effect: () => Result | Promise<Result>): Promise<Result> {
    return this.#call(async () => {
      this.#faults(write, 'before')
      const result = await effect()
      this.#faults(write, 'after')
      return result
    })
  }

  async #call<Result>(effect: () => Result | Promise<Result>): Promise<Result> {
    await this.#latency()
    // A call that is under way when the log is closed has no effect.
    this.#checkOpen()
    const result = await effect()
    await this.#latency()
    return result
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new LogClosedError(LOG)
  }
}
