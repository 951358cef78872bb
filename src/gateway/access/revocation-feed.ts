import {
  concatWith,
  defer,
  filter,
  firstValueFrom,
  fromEvent,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  Subject,
  takeUntil,
  tap,
  throwError,
  timeout,
} from 'rxjs'
import type { Observable, SchedulerLike } from 'rxjs'
import type { EventLog } from '../../log/event-log/event-log.ts'
import { LogClosedError, LogError, LogInUseError } from '../../log/errors.ts'
import type { Entry, Position } from '../../log/store/contract.ts'
import { isText } from '../../protocol/json.ts'
import type { GatewayRevoked } from '../../protocol/gateway.ts'
import type { Revocation } from '../grant.ts'
import { REVOCATION_AGE, revocationKey } from './revocations.ts'
import type { Revocations } from './revocations.ts'

/** The process that keeps revocations for as long as grants may live, even if the log deletes their entries. */
const PROCESS = 'gateway:revocations'

/** How long to wait between two reads of the log, in ms. A revocation must end connections within a second. */
const PAUSE = 100

/** How long to wait after the log has failed, in ms. */
const RETRY = 1_000

/** Maximum time until the process has stored a revocation, in ms. Another gateway that runs the process may be suspended. */
const KEEP_TIMEOUT = 30_000

/** The key under which the process counts the gaps of the log that it has met. No revocation has a `?` at its beginning. */
const GAPS_KEY = '?gaps'

/** A revocation as the process keeps it. */
interface KeptRevocation {
  readonly revocation: Revocation
  /** Time of the revocation, Unix ms. */
  readonly at: number
}

/** A state of the process: of a revocation, or of {@link GAPS_KEY}. */
type KeptState = KeptRevocation | { readonly gaps: number }

/**
 * Follows the revocations of all gateways in a log. A process stores them. Retention does not wait for this process. So an entry may be
 * deleted before the process has read it: the gateway that revokes waits until its revocation is stored, and records it again if entries
 * were deleted meanwhile. Each gateway follows the log, which is faster, and the state of the process, which has each revocation that the
 * log has deleted.
 */
export class RevocationFeed {
  readonly #log: EventLog
  readonly #scheduler: SchedulerLike
  readonly #revocations: Revocations
  readonly #onRevoked: () => void
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  readonly #failure = Promise.withResolvers<never>()
  /** Emits when entries were deleted before this feed has read them. */
  readonly #overtaken = new Subject<void>()
  #keeping: Promise<void> | undefined
  #followingKept: Promise<void> | undefined
  /** Resolves once the log was read for the first time, or could not be. */
  readonly #first = Promise.withResolvers<void>()
  /** Why the log cannot be read at the moment. */
  #problem: { readonly error: unknown } | undefined

  /** @param onRevoked Called when there are new ones. */
  constructor(log: EventLog, scheduler: SchedulerLike, revocations: Revocations, onRevoked: () => void) {
    this.#log = log
    this.#scheduler = scheduler
    this.#revocations = revocations
    this.#onRevoked = onRevoked
    this.#failure.promise.catch(() => {})
    this.#running = this.#run()
  }

  /** Resolves once the earlier revocations are known. Rejects while the log cannot be read, and once the feed is stopped. */
  async ready(): Promise<void> {
    await this.#first.promise
    if (this.#problem !== undefined) throw this.#problem.error
  }

  /** Rejects when revocations can no longer be stored for gateways that start later. */
  get failure(): Promise<never> {
    return this.#failure.promise
  }

  /**
   * Records a revocation, and resolves once the process has stored it.
   *
   * @param at When it was made, in Unix ms.
   * @param record Appends its entry.
   */
  async keep(revocation: Revocation, at: number, record: () => Promise<void>): Promise<void> {
    const key = revocationKey(revocation)
    // The time of an entry has whole milliseconds.
    const since = Math.floor(at)
    let isDone = false
    while (!isDone) {
      const position = await this.#log.positionAt('end')
      const before = await this.#log.states.end(`process:${PROCESS}`)
      // Its state does not change if it has already stored a revocation that is as late, such as one of a gateway whose clock is ahead.
      const wasKept = isKept(await this.#log.state<KeptState>(PROCESS).get(key), since)
      const cancelled = new Subject<never>()
      const outcome = wasKept ? Promise.resolve(true) : this.#outcome(key, since, before, cancelled)
      outcome.catch(() => {})
      try {
        await record()
        // Does not wait for the next read of the feed. It begins to store the revocations that it finds.
        await this.#follow(position)
      } catch (error) {
        cancelled.error(error)
        throw error
      }
      isDone = await outcome
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    let position: Position | undefined
    let isOver = false
    while (!signal.aborted && !isOver) {
      try {
        position = await this.#follow(position ?? (await this.#begin()))
        this.#succeeded()
        await this.#log.wait(position, signal)
        await this.#pause(PAUSE)
      } catch (error) {
        this.#failed(error)
        // The position may be too old by then. Reading revocations twice does no harm.
        position = undefined
        isOver = error instanceof LogClosedError
        if (!signal.aborted && !isOver) await this.#pause(RETRY)
      }
    }
    this.#failed(new LogClosedError('the gateway'))
    await Promise.all([this.#followingKept, this.#keeping])
  }

  /** Reads the state of the process. */
  async #begin(): Promise<Position> {
    const { readers } = await this.#log.stats()
    const process = readers.find(({ kind, name }) => kind === 'process' && name === PROCESS)
    const now = this.#scheduler.now()
    const { state } = await this.#log.state<KeptState>(PROCESS).snapshot({ limit: 10_000_000 })
    for (const each of state.values()) this.#take(each)
    // If an earlier version has run the process, retention waits for it until it runs again.
    if (process !== undefined) this.#beginToKeep(now - REVOCATION_AGE)
    return process?.cursor ?? this.#log.positionAt({ time: now - REVOCATION_AGE })
  }

  /** Reads to the end of the log. */
  async #follow(from: Position): Promise<Position> {
    let position = from
    for (;;) {
      const page = await this.#log.read(position, { limit: 1_000, types: ['gateway.revoked'] })
      for (const entry of page.entries) {
        const kept = keptOf(entry)
        if (kept === undefined) continue
        this.#take(kept)
        // The process begins at this entry: a new process need not read earlier ones.
        this.#beginToKeep(entry.recorded)
      }
      if (page.gap !== undefined) {
        // The deleted revocations are in the state of the process, or are recorded again.
        this.#followingKept ??= this.#followKept()
        this.#overtaken.next()
      }
      position = page.position
      if (page.isEnd) return position
    }
  }

  /** Follows the state of the process, whichever gateway runs it. */
  async #followKept(): Promise<void> {
    const { signal } = this.#stopping
    const state = this.#log.state<KeptState>(PROCESS)
    const taken = state.changes().pipe(
      tap(({ state: each }) => each !== null && this.#take(each)),
      ignoreElements(),
      takeUntil(fromEvent(signal, 'abort')),
    )
    while (!signal.aborted) {
      try {
        // It ends when the log is closed.
        return await lastValueFrom(taken, { defaultValue: undefined })
      } catch {
        // The process was removed, or the log could not be read. Reading revocations twice does no harm.
        await this.#pause(RETRY)
      }
    }
  }

  #take(kept: KeptState): void {
    if ('gaps' in kept) return
    this.#revocations.add(kept.revocation, kept.at, this.#scheduler.now())
    this.#onRevoked()
  }

  /** True once the process has stored a revocation, false once entries were deleted before they were read. Rejects if neither can happen. */
  #outcome(key: string, since: number, before: Position, cancelled: Observable<never>): Promise<boolean> {
    const changes = this.#log.state<KeptState>(PROCESS).changes(before)
    const kept: Observable<boolean> = changes.pipe(
      filter(({ key: each, state }) => state !== null && (each === key || each === GAPS_KEY)),
      map(({ state }) => isKept(state, since)),
      concatWith(throwError(() => new LogClosedError('the log'))),
    )
    const isOver = fromEvent(this.#stopping.signal, 'abort').pipe(
      map(() => {
        throw new LogClosedError('the gateway')
      }),
    )
    const tooLate = () =>
      throwError(
        () =>
          new LogError(
            'the revocation is recorded, and not kept beyond the retention of the log yet: revoke again',
          ),
      )
    return firstValueFrom(
      merge(
        kept,
        cancelled,
        this.#overtaken.pipe(map(() => false)),
        isOver,
        defer(() => this.#failure.promise),
      ).pipe(timeout({ first: KEEP_TIMEOUT, scheduler: this.#scheduler, with: tooLate })),
    )
  }

  /**
   * Runs the process from now on.
   *
   * @param from The time from which it reads if it is new, in Unix ms.
   */
  #beginToKeep(from: number): void {
    this.#followingKept ??= this.#followKept()
    this.#keeping ??= this.#keep(from)
  }

  /** Runs the process here, unless or until another gateway of the log does. */
  async #keep(from: number): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#process(signal, from)
        return
      } catch (error) {
        if (signal.aborted || error instanceof LogClosedError) return
        if (!(error instanceof LogInUseError)) return this.#failure.reject(error)
        // Another gateway over the same open log runs it.
        await this.#pause(RETRY)
      }
    }
  }

  async #process(signal: AbortSignal, from: number): Promise<void> {
    const process = this.#log.process<KeptState | null, 'gateway.revoked' | 'log.gap'>(PROCESS, {
      version: 1,
      types: ['gateway.revoked', 'log.gap'],
      startAt: { time: Math.max(0, from) },
      holdsRetention: false,
      key: (entry) => {
        if (entry.type === 'log.gap') return GAPS_KEY
        const kept = keptOf(entry)
        return kept && revocationKey(kept.revocation)
      },
      init: () => null,
      event: (earlier, entry, context) => {
        if (entry.type === 'log.gap') {
          const gaps = earlier !== null && 'gaps' in earlier ? earlier.gaps : 0
          return context.set({ gaps: gaps + 1 })
        }
        const kept = keptOf(entry)
        if (kept === undefined) return
        // The clocks of two gateways may differ.
        const before = earlier !== null && 'at' in earlier ? earlier.at : 0
        context.set({ ...kept, at: Math.max(kept.at, before) })
      },
      timeToLive: REVOCATION_AGE,
      wait: signal,
    })
    const stop = () => void process.stop().catch(() => {})
    signal.addEventListener('abort', stop)
    await process.done.finally(() => signal.removeEventListener('abort', stop))
  }

  #succeeded(): void {
    this.#problem = undefined
    this.#first.resolve()
  }

  #failed(error: unknown): void {
    this.#problem = { error }
    this.#first.resolve()
  }

  async #pause(delay: number): Promise<void> {
    const { signal } = this.#stopping
    await new Promise<void>((resolve) => {
      const timer = this.#scheduler.schedule(() => end(), delay)
      const end = () => {
        timer.unsubscribe()
        signal.removeEventListener('abort', end)
        resolve()
      }
      signal.addEventListener('abort', end)
    })
  }
}

/** The revocation of an entry; undefined for another entry. */
function keptOf(entry: Entry): KeptRevocation | undefined {
  if (entry.type !== 'gateway.revoked') return undefined
  const { sub, grant, at }: Partial<GatewayRevoked> = Object(entry.data)
  const time = Date.parse(String(at))
  const revocation = isText(sub) ? { sub } : isText(grant) ? { grant } : undefined
  if (revocation === undefined || revocationKey(revocation).length > 512) return undefined
  return { revocation, at: Number.isNaN(time) ? entry.recorded : time }
}

/** Whether a state has a revocation that was made then or later. */
function isKept(state: KeptState | null | undefined, since: number): boolean {
  return state != null && 'at' in state && state.at >= since
}
