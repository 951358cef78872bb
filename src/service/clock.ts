import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration, checkTime } from '../protocol/check.ts'
import { MAX_TIMER_DELAY } from '../protocol/timer-limit.ts'

/**
 * The clock of the service. Monitors, runs and webhooks use it: dates, schedules and retries. Connections use
 * {@link Clock.realTime}.
 */
export interface Clock {
  /** The current time, Unix ms. */
  now(): number
  /** Runs the task once, after `delay` ms of this clock. Returns a function that cancels it. */
  schedule(delay: number, task: () => void): () => void
  /**
   * The clock of connections, which runs at real speed: durations of streams, timeouts of results and minutes of quotas.
   * Default: this clock, so that a test can advance both together.
   */
  readonly realTime?: Clock
}

/** The clock of connections. */
export function realTimeOf(clock: Clock): Clock {
  return clock.realTime ?? clock
}

/**
 * The system clock, `speed` times as fast. It starts at `from` (Unix time in ms, default now), so that time does not go
 * back when a fast service is restarted. Its {@link Clock.realTime} runs at real speed.
 */
export function systemClock(speed = 1, from = Date.now()): Clock {
  if (!(Number.isFinite(speed) && speed > 0)) throw new ArgumentError('speed', 'a number above 0', speed)
  checkTime('from', from)
  const startedAt = performance.now()
  const now = () => Math.floor(from + (performance.now() - startedAt) * speed)
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
      // A timer may fire a fraction of a millisecond early, which is long on a fast clock.
      const check = () => (now() < due ? wait() : task())
      wait()
      return () => clearTimeout(timer)
    },
  }
}

/** A clock for tests, which only moves with {@link ManualClock.advance}. */
export class ManualClock implements Clock {
  #now: number
  #tasks: { readonly due: number; readonly task: () => void }[] = []

  /** @param start Unix time in ms. Default: the start of 2026, UTC. */
  constructor(start = Date.UTC(2026, 0, 1)) {
    checkTime('start', start)
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

  /** Advances the time by `ms`, and runs the tasks that become due, in order. */
  advance(ms: number): void {
    checkDuration('ms', ms)
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
