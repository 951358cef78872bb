import { MAX_TIMER_DELAY } from '../protocol/timer-limit.ts'

/**
 * Where the service gets its time from. All that belongs to a monitor, a run or a webhook goes by it: dates, schedules, the
 * retries of webhooks and how long they are tried. What happens between a caller and the service goes by
 * {@link Clock.realTime}.
 */
export interface Clock {
  /** Unix time in ms. */
  now(): number
  /** Runs the task once, `delay` ms of this clock from now. The function that it returns calls it off. */
  schedule(delay: number, task: () => void): () => void
  /**
   * The time of connections, which is real however fast this clock runs: how long a stream stays open and a result is
   * waited for, and the minutes of quotas. Default: this clock itself, so that a test can move both together.
   */
  readonly realTime?: Clock
}

/** The time that connections go by. */
export function realTimeOf(clock: Clock): Clock {
  return clock.realTime ?? clock
}

/**
 * The machine's time, `speed` times as fast. It starts at `from` (Unix time in ms, default now), so that a service that
 * ran ahead and was restarted does not fall back behind what it has written. Its {@link Clock.realTime} is not sped up.
 */
export function systemClock(speed = 1, from = Date.now()): Clock {
  const began = performance.now()
  const now = () => Math.floor(from + (performance.now() - began) * speed)
  return {
    now,
    ...(speed !== 1 && { realTime: systemClock() }),
    schedule(delay, task) {
      const due = now() + delay
      let timer: NodeJS.Timeout
      const wait = () => {
        const left = Math.ceil((due - now()) / speed)
        timer = setTimeout(check, Math.min(Math.max(0, left), MAX_TIMER_DELAY))
      }
      // A timer may be early by a part of a millisecond, which is long on a fast clock.
      const check = () => (now() < due ? wait() : task())
      wait()
      return () => clearTimeout(timer)
    },
  }
}

/** A clock that stands still until it is moved: for tests. */
export class ManualClock implements Clock {
  #now: number
  #tasks: { readonly due: number; readonly task: () => void }[] = []

  /** @param start Unix time in ms. */
  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  schedule(delay: number, task: () => void): () => void {
    const entry = { due: this.#now + Math.max(0, delay), task }
    this.#tasks.push(entry)
    return () => {
      this.#tasks = this.#tasks.filter((other) => other !== entry)
    }
  }

  /** When the next task is due, Unix time in ms. */
  get next(): number | undefined {
    return this.#tasks.length === 0 ? undefined : Math.min(...this.#tasks.map(({ due }) => due))
  }

  /** Moves time on by `ms`, and runs what becomes due, in the order of its time. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const entry = this.#tasks
        .filter(({ due }) => due <= end)
        .reduce<{ due: number; task: () => void } | undefined>(
          (a, b) => (a === undefined || b.due < a.due ? b : a),
          undefined,
        )
      if (entry === undefined) break
      this.#tasks = this.#tasks.filter((other) => other !== entry)
      this.#now = Math.max(this.#now, entry.due)
      entry.task()
    }
    this.#now = end
  }
}
