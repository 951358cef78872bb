import { MAX_TIMER_DELAY } from '../protocol/timer-limit.ts'

// A browser has no `setImmediate`.
const afterSockets: (work: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : setTimeout

/** Is called by a {@link Deadline}. */
export interface DeadlineListener {
  /** The deadline has passed. */
  onDeadline(): void
}

/**
 * A deadline that is postponed often. Postponing only stores the new time, and the running timer checks it when it fires. So a
 * busy stream starts no timer per chunk.
 */
export class Deadline {
  readonly #listener: DeadlineListener
  #due = Infinity
  #wakes = Infinity
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(listener: DeadlineListener) {
    this.#listener = listener
  }

  /** Moves the deadline to `delay` ms from now; Infinity for never. */
  set(delay: number): void {
    this.#due = performance.now() + delay
    if (this.#due < this.#wakes) this.#sleep()
  }

  /** Cancels the deadline. */
  clear(): void {
    this.#due = Infinity
    this.#wakes = Infinity
    clearTimeout(this.#timer)
  }

  #sleep(): void {
    clearTimeout(this.#timer)
    this.#wakes = this.#due
    // Rounded up, since a timer that fires early would only be started again.
    const left = Math.ceil(this.#due - performance.now())
    this.#timer = setTimeout(Deadline.#wake, Math.min(Math.max(left, 0), MAX_TIMER_DELAY), this)
  }

  // Static, to save a closure for each of thousands of idle streams.
  static #wake(this: void, deadline: Deadline): void {
    deadline.#wakes = Infinity
    // The event loop runs timers before sockets. After the process was blocked, bytes that have arrived must be read first.
    // A `fetch` may still decompress too late.
    if (performance.now() >= deadline.#due) afterSockets(() => deadline.#check())
    else deadline.#check()
  }

  #check(): void {
    if (performance.now() >= this.#due) {
      this.#due = Infinity
      this.#listener.onDeadline()
    } else if (this.#due !== Infinity) {
      this.#sleep()
    }
  }
}
