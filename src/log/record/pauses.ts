import type { Gate } from '../../protocol/gate.ts'
import type { ClockTimers } from './clock.ts'

/** How often the process shows that it runs, in ms. */
const BEAT = 250

/** How late a beat is in a process that was suspended, in ms. */
const SUSPENDED = 500

/** A time in which a recording did not read what came. */
export interface Pause {
  /** When it ended, in Unix ms. It is now while it lasts. */
  readonly end: number
  /** How long it lasted, in ms; infinite if that is not known. */
  readonly duration: number
}

/** Knows when a recording read nothing last: while its gate was closed, or while the process was suspended. */
export class Pauses {
  readonly #gate: Gate
  readonly #timers: ClockTimers
  #last: Pause
  /** When the process was last seen to run. */
  #seenAt: number
  /** When the gate was closed last. */
  #closedAt: number

  constructor(gate: Gate, timers: ClockTimers) {
    this.#gate = gate
    this.#timers = timers
    this.#seenAt = this.#closedAt = timers.now()
    this.#last = { end: this.#seenAt, duration: Infinity }
    gate.onChange((closed) => {
      const now = timers.now()
      if (closed) this.#closedAt = now
      this.#pause(now, this.#closedAt)
    })
  }

  /** Notices suspensions until the signal is aborted. */
  run(signal: AbortSignal): void {
    const beat = () => {
      this.last(this.#timers.now())
      return this.#timers.schedule(() => (timer = beat()), BEAT)
    }
    let timer = beat()
    signal.addEventListener('abort', () => timer.unsubscribe(), { once: true })
  }

  /** The last pause. What came before its end may not be read yet. */
  last(now: number): Pause {
    // How long a pause was is not known after the wall clock was set back.
    if (now < this.#seenAt) this.#pause(now, -Infinity)
    else if (this.#gate.closed) this.#pause(now, this.#closedAt)
    else if (now - this.#seenAt > BEAT + SUSPENDED) this.#pause(now, this.#seenAt)
    this.#seenAt = now
    return this.#last
  }

  #pause(end: number, since: number): void {
    this.#last = { end, duration: end - since }
  }
}
