import type { Subscription } from '@nats-io/transport-node'
import type { Connection } from './connection.ts'

/** Interval at which a waiting call checks by itself, in ms: the message that reports a change may be lost. */
const INTERVAL = 1_000

/**
 * Wakes calls that wait for a change of the log. After a change, a small message is published that is not stored. It may be lost, or
 * arrive before the change that it reports; so calls also check at intervals.
 */
export class Changes {
  readonly #connection: Connection
  readonly #waiting = new Set<() => void>()
  readonly #subscription: Subscription
  #isClosed = false

  constructor(connection: Connection) {
    this.#connection = connection
    this.#subscription = connection.nats.subscribe(connection.names.changes, {
      callback: () => this.#wake(),
    })
  }

  /** Reports a change that is stored. */
  notify(): void {
    if (!this.#connection.nats.isClosed()) this.#connection.nats.publish(this.#connection.names.changes)
  }

  /** Resolves once the check is true. Rejects with the signal's reason, and with the error of the check. */
  async until(isReached: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      // A change during the check counts.
      const { changed, stop } = this.#next(signal)
      try {
        if (await isReached()) return
        if (this.#isClosed) return
        await changed
      } finally {
        stop()
      }
    }
  }

  /** Wakes all waiting calls. They check once more, which rejects since the log is closed. */
  close(): void {
    this.#isClosed = true
    this.#subscription.unsubscribe()
    this.#wake()
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Resolves after the next change, at the next check, or once the signal is aborted. */
  #next(signal: AbortSignal): { readonly changed: Promise<void>; readonly stop: () => void } {
    const { promise: changed, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, INTERVAL)
    this.#waiting.add(resolve)
    const abort = () => resolve()
    signal.addEventListener('abort', abort)
    return {
      changed,
      stop: () => {
        clearTimeout(timer)
        this.#waiting.delete(resolve)
        signal.removeEventListener('abort', abort)
      },
    }
  }
}
