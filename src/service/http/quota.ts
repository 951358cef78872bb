import type { Quota, QuotaLimit, QuotaLimits } from '../../protocol/quotas.ts'
import { type Clock, realTimeOf } from '../clock.ts'
import { problem } from './problem.ts'

/** The requests of the current window by their key. The keys are valid ones, so there are few. */
interface Window {
  readonly number: number
  readonly used: Map<string, number>
}

/**
 * Allows a number of requests of each key in each window of real time. Windows begin at multiples of their length. Quotas without a limit
 * allow all.
 */
export class Quotas {
  readonly #clock: Clock
  readonly #limits: QuotaLimits
  readonly #windows = new Map<Quota, Window>()

  constructor(clock: Clock, limits: QuotaLimits) {
    this.#clock = realTimeOf(clock)
    this.#limits = limits
  }

  /** Counts a request. Throws a 429 with a `Retry-After` in seconds for one too many. */
  take(quota: Quota, key: string): void {
    const limit = this.#limits[quota]
    if (limit === undefined) return
    const { requests, window } = limit
    const now = this.#clock.now()
    const { number, used } = this.#window(quota, now, limit)
    const count = used.get(key) ?? 0
    if (count >= requests) {
      const wait = Math.ceil(((number + 1) * window - now) / 1_000)
      const message = `More than ${requests} requests in ${window / 1_000} s`
      throw problem(429, message, null, { 'retry-after': String(wait) })
    }
    used.set(key, count + 1)
  }

  #window(quota: Quota, now: number, { window }: QuotaLimit): Window {
    const number = Math.floor(now / window)
    const known = this.#windows.get(quota)
    if (known?.number === number) return known
    const current = { number, used: new Map<string, number>() }
    this.#windows.set(quota, current)
    return current
  }
}
