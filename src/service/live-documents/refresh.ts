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

/** Refreshes due URLs: at most one request to a host at a time, with a delay between two of them. */
export interface Refresh {
  start(): void
  /** Resolves when no URL is due that may be requested now, after 10 s of real time at the latest. Never rejects. */
  settled(): Promise<void>
  /** Aborts the requests, and resolves when all have ended. */
  close(): Promise<void>
}

/** Creates the schedule of requests. `visit` requests a URL, which must not be due afterwards. */
export function createRefresh(options: {
  readonly clock: Clock
  readonly store: LiveStore
  readonly visit: (resource: Resource, signal: AbortSignal) => Promise<HostPause>
  /** Called when the database fails; requests then pause for 5 s. */
  readonly onError: (error: unknown) => void
}): Refresh {
  const { clock, store, visit, onError } = options
  const connections = realTimeOf(clock)
  const alarm = createAlarm(clock, startDue, onError)
  const closing = new AbortController()
  const running = new Map<string, Promise<void>>()
  /** When the next request to a host may begin, on the clock of connections. */
  const readyAt = new Map<string, number>()
  /** Hosts that failed. */
  const failing = new Set<string>()
  const waiting = new Set<() => void>()
  let cancelHosts: (() => void) | undefined

  function startDue(now: number): number | undefined {
    cancelHosts?.()
    let nextHost = Infinity
    for (const host of store.dueHosts(now)) {
      if (running.has(host)) continue
      const left = (readyAt.get(host) ?? 0) - connections.now()
      if (left > 0 && failing.has(host)) nextHost = Math.min(nextHost, left)
      else if (running.size < MAX_HOSTS) running.set(host, run(host))
    }
    if (nextHost < Infinity) cancelHosts = connections.schedule(nextHost, alarm.wake)
    if (running.size === 0) for (const done of waiting) done()
    return store.nextAfter(now)
  }

  async function run(host: string): Promise<void> {
    try {
      for (;;) {
        // After this, the host is in `running`.
        await Promise.resolve()
        if (store.due(host, clock.now()) === undefined) break
        await untilReady(host)
        if (closing.signal.aborted) break
        const resource = store.due(host, clock.now())
        if (resource === undefined) break
        const { delay, isFailing } = await visit(resource, closing.signal)
        readyAt.set(host, connections.now() + delay)
        if (isFailing) {
          failing.add(host)
          break
        }
        failing.delete(host)
      }
    } catch (error) {
      running.delete(host)
      if (!closing.signal.aborted) alarm.pause(error)
      for (const done of waiting) done()
      return
    }
    running.delete(host)
    alarm.wake()
  }

  /** Resolves when a request to the host may begin, or when it is closed. */
  async function untilReady(host: string): Promise<void> {
    const left = (readyAt.get(host) ?? 0) - connections.now()
    if (left <= 0) return
    await new Promise<void>((resolve) => {
      const cancel = connections.schedule(left, () => {
        closing.signal.removeEventListener('abort', end)
        resolve()
      })
      const end = () => {
        cancel()
        resolve()
      }
      closing.signal.addEventListener('abort', end, { once: true })
    })
  }

  return {
    start: alarm.start,
    async settled() {
      alarm.wake()
      if (running.size === 0) return
      await new Promise<void>((resolve) => {
        const done = () => {
          waiting.delete(done)
          cancel()
          closing.signal.removeEventListener('abort', done)
          resolve()
        }
        const cancel = connections.schedule(MAX_SETTLING, done)
        waiting.add(done)
        closing.signal.addEventListener('abort', done, { once: true })
      })
    },
    async close() {
      closing.abort()
      alarm.stop()
      cancelHosts?.()
      await Promise.all(running.values())
    },
  }
}
