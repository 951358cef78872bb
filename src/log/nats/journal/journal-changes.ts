import type { Subscription } from '@nats-io/transport-node'
import type { Connection } from '../server/connection.ts'

/** Interval at which a waiting call checks by itself, in ms: a report of a change may be lost, and nothing reports the end of a lease. */
const INTERVAL = 1_000

/** Calls that wait for a change of one journal. */
interface WaitingCallers {
  readonly subscription: Subscription
  readonly calls: Set<() => void>
}

/**
 * Wakes calls that wait for a change of a journal. After a change, a small message is published that is not stored. It may be lost; so
 * calls also look at intervals.
 */
export class JournalChanges {
  readonly #connection: Connection
  readonly #waiting = new Map<string, WaitingCallers>()
  /** Aborted when the log is closed. Its reason is the error with which waiting calls reject. */
  readonly #closed: AbortSignal

  constructor(connection: Connection, closed: AbortSignal) {
    this.#connection = connection
    this.#closed = closed
    closed.addEventListener('abort', () => {
      for (const { calls } of this.#waiting.values()) for (const wake of calls) wake()
    })
  }

  /** Reports a change that is stored. */
  notify(name: string): void {
    const { nats, names } = this.#connection
    if (!nats.isClosed()) nats.publish(names.journalChanges(name))
  }

  /**
   * Resolves with the result of the check. Rejects with the signal's reason, with the error of the check, and once the log is closed.
   *
   * @param interval Interval between two checks if no change is reported, in ms.
   */
  async until<Found>(
    name: string,
    look: () => Promise<Found | undefined>,
    signal: AbortSignal,
    interval = () => INTERVAL,
  ): Promise<Found> {
    for (;;) {
      // A change during the check counts.
      const next = this.#next(name, signal)
      try {
        signal.throwIfAborted()
        this.#closed.throwIfAborted()
        const found = await look()
        if (found !== undefined) return found
        next.lookAfter(interval())
        await next.changed
      } finally {
        next.stop()
      }
    }
  }

  /** Resolves after the next change, at the next check, or once the signal is aborted or the log closed. */
  #next(
    name: string,
    signal: AbortSignal,
  ): {
    readonly changed: Promise<void>
    readonly lookAfter: (interval: number) => void
    readonly stop: () => void
  } {
    const { promise: changed, resolve } = Promise.withResolvers<void>()
    const wake = () => resolve()
    let timer: NodeJS.Timeout | undefined
    const waiting = this.#waiting.get(name) ?? this.#subscribe(name)
    waiting.calls.add(wake)
    signal.addEventListener('abort', wake)
    return {
      changed,
      lookAfter: (interval) => (timer = setTimeout(wake, interval)),
      stop: () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        waiting.calls.delete(wake)
        if (waiting.calls.size > 0 || this.#waiting.get(name) !== waiting) return
        this.#waiting.delete(name)
        waiting.subscription.unsubscribe()
      },
    }
  }

  #subscribe(name: string): WaitingCallers {
    const { nats, names } = this.#connection
    const calls = new Set<() => void>()
    const subscription = nats.subscribe(names.journalChanges(name), {
      callback: () => {
        for (const wake of calls) wake()
      },
    })
    const waiting = { subscription, calls }
    this.#waiting.set(name, waiting)
    return waiting
  }
}
