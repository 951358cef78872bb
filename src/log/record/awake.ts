import type { Gate } from '../../protocol/gate.ts'
import type { ClockTimers } from './clock.ts'

/** How often the process shows that it runs, in ms. */
const BEAT = 250

/** How late a beat is in a process that was suspended, in ms. */
const SUSPENDED = 500

/**
 * Knows since when a recording reads all that comes: without a pause by its gate, by a suspension of the process, or by a wall clock that was
 * set back. What came before that may not be read yet.
 */
export class Awake {
  readonly #gate: Gate
  readonly #timers: ClockTimers
  #since: number
  /** When the process was last seen to run. */
  #seenAt: number

  constructor(gate: Gate, timers: ClockTimers) {
    this.#gate = gate
    this.#timers = timers
    this.#since = this.#seenAt = timers.now()
    gate.onChange(() => (this.#since = timers.now()))
  }

  /** Notices suspensions until the signal is aborted. */
  run(signal: AbortSignal): void {
    const beat = () => {
      this.since(this.#timers.now())
      return this.#timers.schedule(() => (timer = beat()), BEAT)
    }
    let timer = beat()
    signal.addEventListener('abort', () => timer.unsubscribe(), { once: true })
  }

  /** Since when, in Unix ms. It is now while the gate is closed. */
  since(now: number): number {
    const wasSuspended = now - this.#seenAt > BEAT + SUSPENDED || now < this.#seenAt
    if (wasSuspended || this.#gate.closed) this.#since = now
    this.#seenAt = now
    return this.#since
  }
}
