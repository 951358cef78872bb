import { LogClosedError, LogServerError } from '../errors.ts'
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
import type { DeadLetterStore } from '../store/dead-letter-store.ts'
import type { InboxStore } from '../store/inbox-store.ts'
import type { ProcessStore } from '../store/process-store.ts'
import type { RetentionStore } from '../store/retention-store.ts'
import type { SharingStore } from '../store/sharing-store.ts'
import { logName } from './server/connection.ts'
import { NatsCopying } from './copying/copying.ts'
import { OpenNatsLog } from './open-log.ts'
import type { OpenNatsLogSettings } from './open-log.ts'
import { natsProcesses } from './processes.ts'
import { natsRetention } from './retention.ts'
import { serverError } from './server/server-error.ts'
import type { NatsWorkGroups } from './groups/work-groups.ts'

/** A log on a NATS server. It is connected by the first call. */
export class NatsLogStore implements LogStore {
  readonly copying: NatsCopying
  readonly deadLetters: DeadLetterStore
  readonly inbox: InboxStore
  readonly retention: RetentionStore
  readonly processes: ProcessStore
  readonly sharing: SharingStore
  readonly name: string
  readonly #settings: OpenNatsLogSettings
  readonly #closed = new AbortController()
  #opening: Promise<OpenNatsLog> | undefined
  #log: OpenNatsLog | undefined
  #closing: Promise<void> | undefined

  constructor(settings: OpenNatsLogSettings) {
    this.#settings = settings
    this.copying = new NatsCopying(settings)
    this.name = logName(settings.log)
    this.deadLetters = this.#deadLetterStore()
    this.inbox = this.#inboxStore()
    this.retention = natsRetention((effect) => this.#call(effect))
    this.processes = natsProcesses((effect) => this.#call(({ journals }) => effect(journals)))
    this.sharing = {
      partitions: () => this.#call(async (log) => log.connection.names.sources),
      share: (...of) => this.#share(...of),
    }
  }

  claim(name: string, { wait }: { readonly wait?: AbortSignal } = {}): Promise<Fence> {
    return this.#call((log) => log.journals.claims.claim(name, wait))
  }

  async release(fence: Fence): Promise<void> {
    await this.#call((log) => log.journals.claims.release(fence))
  }

  append(appends: readonly StreamAppend[], done: readonly string[] = []): Promise<Appended> {
    return this.#call((log) => log.append(appends, done))
  }

  streamPositions(names: readonly string[]): Promise<readonly (string | null)[]> {
    return this.#call((log) => log.journals.streams.positions(names))
  }

  read(after: Position, options: ReadOptions): Promise<Page> {
    return this.#call((log) => log.reading.read(after, options))
  }

  wait(
    after: Position,
    signal: AbortSignal,
    redelivery?: { readonly reader: string; readonly after: number },
    partition?: number,
  ): Promise<void> {
    let look: (() => Promise<boolean>) | undefined
    return this.#until(signal, async (log) => {
      look ??=
        partition === undefined
          ? async () => (await log.positions.check(after)).sequence < (await log.positions.last())
          : log.reading.waiting(after, partition)
      if (await look()) return true
      if (redelivery === undefined) return false
      return log.journals.deadLetters.hasRedelivery(redelivery.reader, redelivery.after)
    })
  }

  positionAt(start: StartAt): Promise<Position> {
    return this.#call((log) => log.reading.positionAt(start))
  }

  reader(name: string): Promise<StoredReader | undefined> {
    return this.#call((log) => log.journals.readers.get(name))
  }

  async commit(fence: Fence, commit: Commit): Promise<void> {
    await this.#call((log) => log.journals.readers.commit(fence, commit))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close(this.#opening)
    return this.#closing
  }

  async #close(opening: Promise<OpenNatsLog> | undefined): Promise<void> {
    this.#closed.abort(new LogClosedError(this.name))
    const log = await opening?.catch(() => {})
    await log?.close()
  }

  #until(signal: AbortSignal, isReached: (log: OpenNatsLog) => Promise<boolean>): Promise<void> {
    return this.#call(async (log) => {
      await log.changes.until(() => isReached(log), signal)
      this.#checkOpen()
    })
  }

  /** Runs one call. Errors of the client become a LogServerError. */
  async #call<Result>(effect: (log: OpenNatsLog) => Promise<Result>): Promise<Result> {
    this.#checkOpen()
    try {
      const log = await this.#open()
      await log.connection.continuity.verifyAfterReconnect()
      this.#checkOpen()
      return await effect(log)
    } catch (cause) {
      throw this.#errorOf(cause)
    }
  }

  /** The error with which a call rejects. */
  #errorOf(cause: unknown): unknown {
    const error = serverError(this.name, cause)
    // Its connection was closed below it.
    const isClosed = error instanceof LogServerError && this.#closed.signal.aborted
    if (isClosed) return this.#closed.signal.reason
    const failure = this.#log?.connection.continuity.failure
    if (failure !== undefined && error instanceof LogServerError) return failure
    return this.#log?.connection.refusal.explain(this.name, error) ?? error
  }

  async *#share(...of: Parameters<SharingStore['share']>): ReturnType<NatsWorkGroups['share']> {
    const log = await this.#call(async (opened) => opened)
    try {
      yield* log.journals.groups.share(...of)
    } catch (cause) {
      throw this.#errorOf(cause)
    }
  }

  /** An opening that failed is tried again by the next call. */
  #open(): Promise<OpenNatsLog> {
    if (this.#opening !== undefined) return this.#opening
    const opening = OpenNatsLog.open(this.#settings, this.#closed.signal).then((log) => (this.#log = log))
    opening.catch(() => (this.#opening = undefined))
    this.#opening = opening
    return opening
  }

  #checkOpen(): void {
    this.#closed.signal.throwIfAborted()
  }

  #deadLetterStore(): DeadLetterStore {
    return {
      list: (...of) => this.#call((log) => log.journals.deadLetters.list(...of)),
      counts: () => this.#call((log) => log.journals.deadLetters.counts()),
      redeliver: (...of) => this.#call((log) => log.journals.deadLetters.redeliver(...of)),
      remove: (...of) => this.#call((log) => log.journals.deadLetters.remove(...of)),
      redeliveries: (...of) => this.#call((log) => log.journals.deadLetters.redeliveries(...of)),
    }
  }

  #inboxStore(): InboxStore {
    return {
      put: ({ id, timestamp }, json) =>
        this.#call(async (log) => log.inbox.put({ id, timestamp, json }, await log.times.now())),
      isFull: (id) => this.#closing === undefined && this.#log?.inbox.isFull(id) === true,
      pending: (...of) => this.#call((log) => log.inbox.pending(...of)),
      wait: (after, signal) => this.#until(signal, (log) => log.inbox.hasMore(after)),
    }
  }
}
