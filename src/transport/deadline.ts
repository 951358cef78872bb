import { MAX_TIMER_DELAY } from '../protocol/timer-limit.ts'

// A browser has no `setImmediate`.
const afterSockets: (work: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : setTimeout

/** Whom the deadline tells. */
export interface DeadlineListener {
  /** It has passed. */
  late(): void
}

/**
 * A moment that keeps being put off. Putting it off only notes the new moment: the one timer that runs looks at it when
 * it wakes, so that a busy stream sets no timer for each of its chunks.
 */
export class Deadline {
  readonly #listener: DeadlineListener
  #due = Infinity
  #wakes = Infinity
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(listener: DeadlineListener) {
    this.#listener = listener
  }

  /** Moves the deadline to `delay` ms from now; Infinity means that it never comes. */
  set(delay: number): void {
    this.#due = performance.now() + delay
    if (this.#due < this.#wakes) this.#sleep()
  }

  /** Calls it off. */
  clear(): void {
    this.#due = Infinity
    this.#wakes = Infinity
    clearTimeout(this.#timer)
  }

  #sleep(): void {
    clearTimeout(this.#timer)
    this.#wakes = this.#due
    // Rounded up, since a timer that wakes early would only sleep again.
    const left = Math.ceil(this.#due - performance.now())
    this.#timer = setTimeout(Deadline.#wake, Math.min(Math.max(left, 0), MAX_TIMER_DELAY), this)
  }

  // Static, since each of thousands of quiet streams would have a closure of its own.
  static #wake(this: void, deadline: Deadline): void {
    deadline.#wakes = Infinity
    // Timers come before sockets: where the process itself stood still, what its sockets have is read first. What a
    // `fetch` still has to unpack may come too late all the same.
    if (performance.now() >= deadline.#due) afterSockets(() => deadline.#look())
    else deadline.#look()
  }

  #look(): void {
    if (performance.now() >= this.#due) {
      this.#due = Infinity
      this.#listener.late()
    } else if (this.#due !== Infinity) {
      this.#sleep()
    }
  }
}
