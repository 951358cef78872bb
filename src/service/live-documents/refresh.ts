import { createAlarm } from '../alarm.ts'
import { type Clock, realTimeOf } from '../clock.ts'
import type { LiveStore, Resource } from './store.ts'

/** Maximum number of hosts with a request at the same time. */
const MAX_HOSTS = 8
/** The longest wait of {@link Refresh.settled}, in ms of real time. */
const MAX_SETTLING = 10_000

/** The limits on requests to a host after a request. */
export interface HostPause {
  /** How long the next request to this host waits, in ms of real time. */
  readonly delay: number
  /** Whether the host failed: the URLs that are due wait too. */
  readonly isFailing: boolean
}

/** Settings of {@link Refresh}. */
export interface RefreshOptions {
  readonly clock: Clock
  readonly store: LiveStore
  /** Requests a URL, which must not be due afterwards. */
  readonly visit: (resource: Resource, signal: AbortSignal) => Promise<HostPause>
  /** Called when the database fails; requests then pause for 5 s. */
  readonly onError: (error: unknown) => void
}

/** Refreshes due URLs: at most one request to a host at a time, with a delay between two of them. */
export class Refresh {
  readonly #clock: Clock
  readonly #connections: Clock
  readonly #store: LiveStore
  readonly #visit: RefreshOptions['visit']
  readonly #alarm: ReturnType<typeof createAlarm>
  readonly #closing = new AbortController()
  readonly #running = new Map<string, Promise<void>>()
  /** When the next request to a host may begin, on the clock of connections. */
  readonly #readyAt = new Map<string, number>()
  /** Hosts that failed. */
  readonly #failing = new Set<string>()
  readonly #waiting = new Set<() => void>()
  #cancelHosts: (() => void) | undefined

  constructor({ clock, store, visit, onError }: RefreshOptions) {
    this.#clock = clock
    this.#connections = realTimeOf(clock)
    this.#store = store
    this.#visit = visit
    this.#alarm = createAlarm(clock, (now) => this.#startDue(now), onError)
  }

  start(): void {
    this.#alarm.start()
  }

  /** Resolves when no URL is due that may be requested now, after 10 s of real time at the latest. Never rejects. */
  async settled(): Promise<void> {
    this.#alarm.wake()
    if (this.#running.size === 0) return
    const { signal } = this.#closing
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#waiting.delete(done)
        cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const cancel = this.#connections.schedule(MAX_SETTLING, done)
      this.#waiting.add(done)
      signal.addEventListener('abort', done, { once: true })
    })
  }

  /** Aborts the requests, and resolves when all have ended. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#alarm.stop()
    this.#cancelHosts?.()
    await Promise.all(this.#running.values())
  }

  #startDue(now: number): number | undefined {
    this.#cancelHosts?.()
    let nextHost = Infinity
    for (const host of this.#store.dueHosts(now)) {
      if (this.#running.has(host)) continue
      const left = (this.#readyAt.get(host) ?? 0) - this.#connections.now()
      if (left > 0 && this.#failing.has(host)) nextHost = Math.min(nextHost, left)
      else if (this.#running.size < MAX_HOSTS) this.#running.set(host, this.#run(host))
    }
    if (nextHost < Infinity) this.#cancelHosts = this.#connections.schedule(nextHost, this.#alarm.wake)
    if (this.#running.size === 0) for (const done of this.#waiting) done()
    return this.#store.nextAfter(now)
  }

  async #run(host: string): Promise<void> {
    try {
      for (;;) {
        // After this, the host is in `running`.
        await Promise.resolve()
        if (this.#store.due(host, this.#clock.now()) === undefined) break
        await this.#untilReady(host)
        if (this.#closing.signal.aborted) break
        const resource = this.#store.due(host, this.#clock.now())
        if (resource === undefined) break
        const { delay, isFailing } = await this.#visit(resource, this.#closing.signal)
        this.#readyAt.set(host, this.#connections.now() + delay)
        if (isFailing) {
          this.#failing.add(host)
          break
        }
        this.#failing.delete(host)
      }
    } catch (error) {
      this.#running.delete(host)
      if (!this.#closing.signal.aborted) this.#alarm.pause(error)
      for (const done of this.#waiting) done()
      return
    }
    this.#running.delete(host)
    this.#alarm.wake()
  }

  /** Resolves when a request to the host may begin, or when it is closed. */
  async #untilReady(host: string): Promise<void> {
    const left = (this.#readyAt.get(host) ?? 0) - this.#connections.now()
    if (left <= 0) return
    await new Promise<void>((resolve) => {
      const cancel = this.#connections.schedule(left, () => {
        this.#closing.signal.removeEventListener('abort', end)
        resolve()
      })
      const end = () => {
        cancel()
        resolve()
      }
      this.#closing.signal.addEventListener('abort', end, { once: true })
    })
  }
}
