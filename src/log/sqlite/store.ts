import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { checkText } from '../../protocol/check.ts'
import type { InboxOutcome } from '../../protocol/webhook.ts'
import type {
  Appended,
  Commit,
  Fence,
  LogStore,
  Page,
  Position,
  ReadOptions,
  StartAt,
  StoredReader,
  StreamAppend,
} from '../store/contract.ts'
import type { ProcessStore } from '../store/process-store.ts'
import { UNDIVIDED } from '../store/sharing-store.ts'
import type { SharingStore } from '../store/sharing-store.ts'
import { machineClock } from '../store/machine-clock.ts'
import { clocksOf } from '../store/log-clock.ts'
import type { WallAndMonotonic } from '../store/log-clock.ts'
import { UndividedGroups } from '../store/undivided-groups.ts'
import type { DeadLetterStore } from '../store/dead-letter-store.ts'
import { LogClosedError, LogConflictError, LogInUseError } from '../errors.ts'
import type { InboxStore, PreparedDelivery } from '../store/inbox-store.ts'
import type { RetentionStore } from '../store/retention-store.ts'
import { backUp } from './backup.ts'
import { SqliteCopying } from './copying.ts'
import type { Range, Step } from './dead-letters.ts'
import { GroupCommit } from './group-commit.ts'
import { OpenSqliteLog } from './open-log.ts'
import type { OpenSqliteLogSettings, Transactions } from './open-log.ts'
import { sqliteRetention } from './retention.ts'
import { isBusy, logFileError } from './sqlite-error.ts'
import { whileBusy, WriteQueue } from './write-queue.ts'

/** Maximum time to wait for the end of another program's transaction, in ms. */
const PATIENCE = 60_000

/** Maximum time to wait if there is an answer without the transaction, or if nothing is lost, in ms. */
const SHORT_PATIENCE = 250

/** Maximum time for which all calls together wait while the log is being closed, in ms. */
const CLOSE_PATIENCE = 3_000

/** How long after a release that failed the next attempt is made, in ms. */
const RELEASE_INTERVAL = 10_000

/** How long a webhook waits for other writers until its sender gets a 503 and tries again, in ms. */
const PUT_PATIENCE = 5_000

/** Dead letters that one transaction marks or removes. */
const DEAD_LETTER_STEP = 250

/** Between two looks at a name that another one holds, in ms. Random, so that several that wait do not look at once. */
const MIN_CLAIM_INTERVAL = 20
const MAX_CLAIM_INTERVAL = 60

/** Settings of a {@link SqliteLogStore}. */
export interface SqliteStoreSettings extends OpenSqliteLogSettings {
  readonly clock: () => number
  readonly patience?: number
  /** A monotonic clock in ms, the same for all processes of the machine. */
  readonly monotonic?: () => number
}

/** A log in an SQLite file. The file is opened by the first call. */
export class SqliteLogStore implements LogStore {
  readonly copying: SqliteCopying
  readonly deadLetters: DeadLetterStore
  readonly inbox: InboxStore
  readonly retention: RetentionStore
  readonly processes: ProcessStore
  readonly sharing: SharingStore
  readonly name: string
  readonly #closed = new AbortController()
  readonly #settings: SqliteStoreSettings
  readonly #patience: number
  readonly #clocks: WallAndMonotonic
  readonly #writes = new WriteQueue()
  /** The latest time until which a call waits for other programs, by `performance.now`. */
  #latest = Infinity
  #opening: Promise<OpenSqliteLog> | undefined
  #log: OpenSqliteLog | undefined
  #closing: Promise<void> | undefined

  constructor(file: string, settings: SqliteStoreSettings) {
    this.name = file
    this.copying = new SqliteCopying(file)
    this.#settings = settings
    this.#patience = settings.patience ?? PATIENCE
    const transactions: Transactions = {
      read: (work) => this.#call((log) => this.#snapshot(log, () => work(log))),
      write: (durability, work, patience = this.#patience) =>
        this.#call((log) =>
          this.#write(() => log.file.write(durability, () => work(log)), Math.min(patience, this.#patience)),
        ),
      until: (isReached, signal) => this.#until(signal, isReached),
      opened: () => (this.#closing === undefined ? this.#log : undefined),
      alone: (work) => this.#call((log) => this.#write(() => work(log))),
      // A call that has changed something has opened it.
      notify: () => void this.#opening?.then((log) => log.watch.notify()),
    }
    this.deadLetters = deadLetterStore(transactions)
    const { clock, monotonic } = settings
    this.#clocks = monotonic === undefined ? clocksOf(clock, machineClock) : { wall: clock, monotonic }
    this.inbox = inboxStore(transactions, this.#clocks)
    this.retention = sqliteRetention(transactions, this.#clocks)
    this.processes = processStore(transactions)
    const groups = new UndividedGroups(file, settings.owner, this.#closed.signal)
    this.sharing = {
      partitions: () => this.#call(() => UNDIVIDED),
      share: (...of) => groups.share(...of),
    }
  }

  claim(name: string, { wait }: { readonly wait?: AbortSignal } = {}): Promise<Fence> {
    return this.#call(async (log) => {
      for (;;) {
        wait?.throwIfAborted()
        const owner = await this.#snapshot(log, () => log.claims.ownerOf(name))
        if (owner === undefined || wait === undefined) {
          const result = await this.#claim(log, name, owner)
          if (typeof result !== 'string') return result
          if (wait === undefined) throw new LogInUseError(this.name, name, result)
        }
        const interval = MIN_CLAIM_INTERVAL + Math.random() * (MAX_CLAIM_INTERVAL - MIN_CLAIM_INTERVAL)
        // Node's error for an abort is replaced by the signal's reason.
        await delay(interval, undefined, { signal: wait }).catch(() => wait.throwIfAborted())
      }
    })
  }

  async release(fence: Fence): Promise<void> {
    try {
      await this.#call((log) => this.#write(() => log.claims.release(fence)))
    } catch (error) {
      // Nothing uses the name now, and other processes may wait for it. A later claim of it has another token.
      if (!(error instanceof LogClosedError)) this.#releaseLater(fence)
      throw error
    }
  }

  append(appends: readonly StreamAppend[], done: readonly string[] = []): Promise<Appended> {
    const added = appends.flatMap((append) => append.entries)
    return this.#call(async (log) => {
      const { entries, claims } = log
      const result = await this.#write(() =>
        log.file.write('FULL', () => {
          for (const { fence } of appends) claims.check(fence)
          for (const { fence, expect, position } of appends) {
            if (log.streamPosition(fence.name) !== expect) throw new LogConflictError(this.name, fence.name)
            if (position !== undefined) log.moveStream(fence.name, position)
          }
          log.inbox.done(done)
          const appended = entries.append(added, this.#clocks)
          const end = entries.positions.format(entries.end().position)
          return { ...appended, duplicates: added.length - appended.entries, end }
        }),
      )
      if (result.entries > 0) log.watch.notify()
      return result
    })
  }

  streamPositions(names: readonly string[]): Promise<readonly (string | null)[]> {
    return this.#call((log) => this.#snapshot(log, () => names.map((name) => log.streamPosition(name))))
  }

  read(after: Position, options: ReadOptions): Promise<Page> {
    return this.#call((log) => this.#snapshot(log, () => log.entries.read(after, options)))
  }

  wait(
    after: Position,
    signal: AbortSignal,
    redelivery?: { readonly reader: string; readonly after: number },
  ): Promise<void> {
    return this.#until(signal, ({ entries, deadLetters }) => {
      if (entries.positions.parse(after, entries.end().position) < entries.end().position) return true
      return redelivery !== undefined && deadLetters.hasRedelivery(redelivery.reader, redelivery.after)
    })
  }

  positionAt(start: StartAt): Promise<Position> {
    return this.#call((log) => this.#snapshot(log, () => log.entries.positionAt(start)))
  }

  reader(name: string): Promise<StoredReader | undefined> {
    return this.#call((log) =>
      this.#snapshot(log, () => {
        const reader = log.readers.get(name)
        return reader && { ...reader, process: log.processes.process(name) }
      }),
    )
  }

  async commit(fence: Fence, commit: Commit): Promise<void> {
    const { name } = fence
    const { process, entries: added = [], deadLetters = [], redelivered = [] } = commit
    const isStateChanged = (process?.state.length ?? 0) > 0
    // A power cut may take a cursor back: entries are read again. Appended entries stay. So do dead letters, which a database of effects
    // forgets, and states, since a follower has the position of their change.
    const isSynced = added.length > 0 || deadLetters.length > 0 || isStateChanged
    const durability = isSynced ? 'FULL' : 'NORMAL'
    await this.#call(async (log) => {
      await this.#write(() =>
        log.file.write(durability, () => {
          log.claims.check(fence)
          const last = log.entries.end().position
          log.readers.commit(name, commit, last)
          const now = log.entries.now(this.#clocks)
          for (const deadLetter of deadLetters) log.deadLetters.put(name, deadLetter, last, now)
          for (const position of redelivered) log.deadLetters.handled(name, position, last)
          if (process !== undefined) log.processes.commit(name, process)
          log.entries.append(added, this.#clocks)
        }),
      )
      if (added.length > 0 || isStateChanged) log.watch.notify()
    })
  }

  /** See `SqliteStore`. */
  async backup(file: string): Promise<void> {
    checkText('file', file)
    const target = resolve(file)
    await backUp(await this.#call((log) => log.file.path), target)
  }

  prepareClose(): void {
    this.#latest = Math.min(this.#latest, performance.now() + CLOSE_PATIENCE)
  }

  close(): Promise<void> {
    this.#closed.abort(new LogClosedError(this.name))
    this.#closing ??= this.#close(this.#opening)
    return this.#closing
  }

  /** Releases a name later, without keeping the process alive: its claims end with it. */
  #releaseLater(fence: Fence): void {
    setTimeout(() => void this.release(fence).catch(() => {}), RELEASE_INTERVAL).unref()
  }

  /** Waits until the condition is true in one snapshot. */
  #until(signal: AbortSignal, isReached: (log: OpenSqliteLog) => boolean): Promise<void> {
    return this.#call(async (log) => {
      // It may have been aborted while the file was opened.
      signal.throwIfAborted()
      await log.watch.until(() => log.file.read(() => isReached(log)), signal)
    })
  }

  async #close(opening: Promise<OpenSqliteLog> | undefined): Promise<void> {
    const log = await opening?.catch(() => {})
    if (log === undefined) return
    log.watch.close(new LogClosedError(this.name))
    try {
      await this.#writes.run(() => log.claims.releaseAll(), SHORT_PATIENCE)
    } catch {
      // Without its lock, each claim is dead.
    } finally {
      log.close()
    }
  }

  /** Runs one call. What SQLite throws becomes a LogFileError. */
  async #call<Result>(effect: (log: OpenSqliteLog) => Result | Promise<Result>): Promise<Result> {
    this.#checkOpen()
    try {
      const log = await this.#open()
      this.#checkOpen()
      return await effect(log)
    } catch (error) {
      throw logFileError(this.name, error)
    }
  }

  /** An opening that failed is tried again by the next call. */
  #open(): Promise<OpenSqliteLog> {
    if (this.#opening !== undefined) return this.#opening
    const opening = whileBusy(() => {
      this.#checkOpen()
      return (this.#log = new OpenSqliteLog(this.name, this.#settings))
    }, this.#patience)
    opening.catch(() => (this.#opening = undefined))
    this.#opening = opening
    return opening
  }

  /** Reads from one snapshot. Readers wait for no writer, but for one that recovers or closes the file. */
  #snapshot<Result>(log: OpenSqliteLog, work: () => Result): Promise<Result> {
    return whileBusy(
      () => {
        this.#checkOpen()
        return log.file.read(work)
      },
      this.#patience,
      () => this.#latest,
    )
  }

  /** Runs a write transaction after the earlier ones. */
  #write<Result>(work: () => Result, patience = this.#patience): Promise<Result> {
    return this.#writes.run(
      () => {
        // A call that is under way when the log is closed has no effect.
        this.#checkOpen()
        return work()
      },
      patience,
      () => this.#latest,
    )
  }

  /**
   * Claims a name, or returns the owner that holds it.
   *
   * @param known The owner that was found without a transaction. It is the answer if none can begin, since the owner may be
   * suspended within one.
   */
  async #claim(log: OpenSqliteLog, name: string, known: string | undefined): Promise<Fence | string> {
    try {
      const patience = known === undefined ? this.#patience : SHORT_PATIENCE
      return await this.#write(() => log.claims.claim(name), patience)
    } catch (error) {
      if (known !== undefined && isBusy(error)) return known
      throw error
    }
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new LogClosedError(this.name)
  }
}

function deadLetterStore(transactions: Transactions): DeadLetterStore {
  const numberOf = ({ entries }: OpenSqliteLog, position: Position) =>
    entries.positions.parse(position, entries.end().position)
  /** Changes dead letters in steps, so that other writers need not wait. In the order of the log, one that fails again meanwhile is not met twice. */
  const change = async (which: Position | 'all', step: (log: OpenSqliteLog, range: Range) => Step) => {
    let count = 0
    for (let next: number | undefined = 0; next !== undefined;) {
      const from: number = next
      const { changed, last } = await transactions.write('FULL', (log) => {
        if (which === 'all') return step(log, { from, to: Number.MAX_SAFE_INTEGER })
        const position = numberOf(log, which)
        return step(log, { from: position, to: position })
      })
      count += changed
      next = last === undefined ? undefined : last + 1
    }
    return count
  }
  return {
    list: (reader, after, limit) =>
      transactions.read((log) =>
        log.deadLetters.list(reader, after === null ? 0 : numberOf(log, after), limit),
      ),
    counts: () => transactions.read((log) => log.deadLetters.counts()),
    async redeliver(reader, which) {
      const count = await change(which, (log, range) =>
        log.deadLetters.redeliver(reader, range, DEAD_LETTER_STEP),
      )
      if (count > 0) transactions.notify()
      return count
    },
    remove: (reader, which) =>
      change(which, (log, range) => log.deadLetters.remove(reader, range, DEAD_LETTER_STEP)),
    redeliveries: (reader, after, limit) =>
      transactions.read((log) => log.deadLetters.redeliveries(reader, after, limit)),
  }
}

function inboxStore(transactions: Transactions, clocks: WallAndMonotonic): InboxStore {
  const puts = new GroupCommit<PreparedDelivery, InboxOutcome>(
    async (deliveries) => {
      const outcomes = await transactions.write(
        'FULL',
        (log) => log.inbox.put(deliveries, log.entries.now(clocks)),
        PUT_PATIENCE,
      )
      transactions.opened()?.inbox.counted()
      if (outcomes.includes('stored')) transactions.notify()
      return outcomes
    },
    ({ json }) => json.length,
  )
  return {
    put: ({ id, timestamp }, json) => puts.add({ id, timestamp, json }),
    isFull(id) {
      try {
        return transactions.opened()?.inbox.isFull(id) === true
      } catch {
        // `put` reports what is wrong with the file.
        return false
      }
    },
    pending: (after, limit) => transactions.read((log) => log.inbox.pending(after, limit)),
    wait: (after, signal) => transactions.until((log) => log.inbox.hasMore(after), signal),
  }
}

function processStore({ read, write, until }: Transactions): ProcessStore {
  return {
    states: (name, keys) => read(({ processes }) => processes.states(name, keys)),
    timers: (name, options) => read(({ processes }) => processes.timers(name, options)),
    keyTimers: (name, ...of) => read(({ processes }) => processes.keyTimers(name, ...of)),
    start: () => read(({ processes }) => processes.positions.start),
    end: (name) => read(({ processes }) => processes.end(name)),
    changes: (name, after, options) => read(({ processes }) => processes.changes(name, after, options)),
    range: (name, options) => read(({ processes }) => processes.range(name, options)),
    wait: (name, after, signal) => until(({ processes }) => processes.hasMore(name, after), signal),
    pause: (fence) =>
      write('NORMAL', ({ claims, processes }) => {
        claims.check(fence)
        processes.pause(fence.name, fence.token)
      }),
  }
}
