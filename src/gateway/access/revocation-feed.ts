import type { SchedulerLike } from 'rxjs'
import type { EventLog } from '../../log/event-log.ts'
import { LogClosedError, LogInUseError } from '../../log/errors.ts'
import type { Entry, Position } from '../../log/store/contract.ts'
import { isText } from '../../protocol/event.ts'
import type { GatewayRevoked } from '../../protocol/gateway.ts'
import type { Revocation } from '../grant.ts'
import { REVOCATION_AGE, revocationKey } from './revocations.ts'
import type { Revocations } from './revocations.ts'

/** The process that keeps revocations for as long as grants may live, whatever the log deletes. */
const PROCESS = 'gateway:revocations'

/** How long to wait between two reads of the log, in ms. A revocation must end connections within a second. */
const PAUSE = 100

/** How long to wait after the log has failed, in ms. */
const RETRY = 1_000

/** A revocation as the process keeps it. */
interface KeptRevocation {
  readonly revocation: Revocation
  /** Unix ms. */
  readonly at: number
}

/** Follows the revocations in a log, of all gateways. */
export class RevocationFeed {
  readonly #log: EventLog
  readonly #scheduler: SchedulerLike
  readonly #revocations: Revocations
  readonly #onRevoked: () => void
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  readonly #failure = Promise.withResolvers<never>()
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

  /** Rejects where revocations are not kept any more for gateways that start later. */
  get failure(): Promise<never> {
    return this.#failure.promise
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    const keeping = this.#keep()
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
        // A position may be too old by then. What is read twice is harmless.
        position = undefined
        isOver = error instanceof LogClosedError
        if (!signal.aborted && !isOver) await this.#pause(RETRY)
      }
    }
    this.#failed(new TypeError('the gateway is closed'))
    await keeping
  }

  /** Reads what the process has kept. Returns the position up to which it has read the log. */
  async #begin(): Promise<Position> {
    const { readers } = await this.#log.stats()
    const process = readers.find(({ kind, name }) => kind === 'process' && name === PROCESS)
    const now = this.#scheduler.now()
    const { state } = await this.#log.state<KeptRevocation>(PROCESS).snapshot({ limit: 10_000_000 })
    for (const { revocation, at } of state.values()) this.#revocations.add(revocation, at, now)
    if (state.size > 0) this.#onRevoked()
    return process?.cursor ?? this.#log.positionAt({ time: now - REVOCATION_AGE })
  }

  /** Reads to the end of the log. */
  async #follow(from: Position): Promise<Position> {
    let position = from
    for (;;) {
      const page = await this.#log.read(position, { limit: 1_000, types: ['gateway.revoked'] })
      const kept = page.entries.flatMap((entry) => keptOf(entry) ?? [])
      for (const { revocation, at } of kept) this.#revocations.add(revocation, at, this.#scheduler.now())
      if (kept.length > 0) this.#onRevoked()
      position = page.position
      if (page.isEnd) return position
    }
  }

  /** Runs the process here, unless or until another gateway of the log does. */
  async #keep(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#process(signal)
        return
      } catch (error) {
        if (signal.aborted || error instanceof LogClosedError) return
        if (!(error instanceof LogInUseError)) return this.#failure.reject(error)
        // Another gateway over the same open log runs it.
        await this.#pause(RETRY)
      }
    }
  }

  async #process(signal: AbortSignal): Promise<void> {
    const startAt = { time: Math.max(0, this.#scheduler.now() - REVOCATION_AGE) }
    const process = this.#log.process<KeptRevocation | null, 'gateway.revoked'>(PROCESS, {
      version: 1,
      types: ['gateway.revoked'],
      startAt,
      key: (entry) => {
        const kept = keptOf(entry)
        return kept && revocationKey(kept.revocation)
      },
      init: () => null,
      event: (earlier, entry, context) => {
        const kept = keptOf(entry)
        if (kept === undefined) return
        // The clocks of two gateways may differ.
        context.set({ ...kept, at: Math.max(kept.at, earlier?.at ?? 0) })
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

/** The revocation of an entry; undefined for an entry that is none. Another version may have recorded it. */
function keptOf(entry: Entry): KeptRevocation | undefined {
  if (entry.type !== 'gateway.revoked') return undefined
  const { sub, grant, at }: Partial<GatewayRevoked> = Object(entry.data)
  const time = Date.parse(String(at))
  const revocation = isText(sub) ? { sub } : isText(grant) ? { grant } : undefined
  if (revocation === undefined || revocationKey(revocation).length > 512) return undefined
  return { revocation, at: Number.isNaN(time) ? entry.recorded : time }
}
