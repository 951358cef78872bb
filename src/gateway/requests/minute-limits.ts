/** The most subjects whose use is counted. Beyond this number, the subject that has used nothing for the longest time is forgotten. */
const MAX_SUBJECTS = 50_000

/** The use of a subject. */
interface Used {
  /** The amount in use at the time `at`. It drains at the rate of the limit. */
  amount: number
  /** Time of the amount, Unix ms. */
  at: number
}

/** Counts what subjects use, against limits per minute. */
export class MinuteLimits {
  readonly #used = new Map<string, Used>()

  /** Counts an amount, and returns 0; or the time to wait, in ms, if the limit has no room for it. */
  take(subject: string, amount: number, perMinute: number, now: number): number {
    const rate = perMinute / 60_000
    const { amount: before, at } = this.#used.get(subject) ?? { amount: 0, at: now }
    const used = Math.max(0, before - Math.max(0, now - at) * rate)
    const excess = used + amount - perMinute
    if (excess > 0) return Math.ceil(excess / rate)
    // The last subject in the map is the most recently used one.
    this.#used.delete(subject)
    this.#used.set(subject, { amount: used + amount, at: now })
    const [oldest] = this.#used.keys()
    if (this.#used.size > MAX_SUBJECTS && oldest !== undefined) this.#used.delete(oldest)
    return 0
  }
}
