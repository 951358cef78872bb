import { Subscription } from 'rxjs'
import { ACTIVE_INTERVAL, Clock, MAX_HOLD } from '../record/clock.ts'
import type { ClockTimers } from '../record/clock.ts'
import { ProgressRegistry } from '../record/progress-registry.ts'
import type { Recorder } from '../record/recorder.ts'

/** The time between two ticks of {@link AppendClock} while nothing is appended, in ms. */
export const APPEND_TICK = 10_000

/**
 * The clock of a log that has events of an application, or of recordings whose sources have ended, and no recording that runs. Nothing is known that is still
 * to come, so they are complete up to now. It waits for a recording that has stopped. Once one runs, that one has the clock.
 */
export class AppendClock {
  readonly #interval: number
  readonly #recorder: (onFailure: (error: unknown) => void) => Recorder
  readonly #closing = new AbortController()
  /** The timer that starts the clock. */
  #starting = Subscription.EMPTY
  #running: { readonly clock: Clock; readonly ended: Promise<void> } | undefined

  /** @param interval The time between two ticks while nothing is appended, in ms; `Infinity` for none at all. */
  constructor(interval: number, recorder: (onFailure: (error: unknown) => void) => Recorder) {
    this.#interval = interval
    this.#recorder = recorder
  }

  /** Called when the application appends, or a recording has ended because its sources have. */
  touch(): void {
    if (this.#interval === Infinity || this.#closing.signal.aborted) return
    this.#running?.clock.touch()
    if (this.#running !== undefined || !this.#starting.closed) return
    // A program that appends and ends needs no clock.
    this.#starting = TIMERS.schedule(
      () => {
        this.#starting.unsubscribe()
        this.#running = this.#begin()
        this.#running.clock.touch()
      },
      Math.min(this.#interval, ACTIVE_INTERVAL),
    )
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#starting.unsubscribe()
    await this.#running?.ended
  }

  #begin() {
    const failing = new AbortController()
    const recorder = this.#recorder((error) => failing.abort(error))
    const clock = new Clock({
      recorder,
      registry: new ProgressRegistry(recorder),
      scheduler: TIMERS,
      interval: this.#interval,
      maxHold: MAX_HOLD,
      parts: () => [],
      yields: true,
    })
    const signal = AbortSignal.any([this.#closing.signal, failing.signal])
    const ended = clock
      .run(signal)
      // Another open log has the clock now, or the log fails, as the next call of `append` reports. That call begins again.
      .catch(() => {})
      .then(() => recorder.close())
      .then(() => {
        this.#running = undefined
      })
    return { clock, ended }
  }
}

/** Timers that do not keep a program running that has nothing else to do. */
const TIMERS: ClockTimers = {
  now: () => Date.now(),
  schedule(work, delay) {
    const timer = setTimeout(work, delay)
    if (typeof timer === 'object') timer.unref()
    return new Subscription(() => clearTimeout(timer))
  },
}
