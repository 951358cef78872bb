import type { Subscription } from '@nats-io/transport-node'
import type { Connection } from './connection.ts'

/** How often a call that waits looks for itself: what reports a change may be lost. In ms. */
const INTERVAL = 1_000

/**
 * Wakes calls that wait for something in the log. After a change, a small message is published that is not stored. It may be lost, or come
 * before what it reports; so calls also look at intervals.
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

  /** Resolves once this is so. Rejects with the signal's reason, and with what the look throws. */
  async until(isReached: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      // A change during the look counts.
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

  /** Wakes all that wait. They look once more, which rejects since the log is closed. */
  close(): void {
    this.#isClosed = true
    this.#subscription.unsubscribe()
    this.#wake()
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Resolves after the next change, at the next look, or once the signal is aborted. */
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
