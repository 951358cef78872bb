import type { QuotaLimit } from '../protocol/quotas.ts'
import { SlidingWindow } from './sliding-window.ts'

/**
 * The limit that a service showed by a 429: the number of requests that it had accepted within the window. It grows by a
 * twentieth of the known limit with each window without a 429, since another user of the key may have caused it.
 */
export class LearnedLimit {
  readonly #known: QuotaLimit
  #requests: number
  /** The starts since the last pause. */
  #window: SlidingWindow
  #refused = 0
  #resumesAt = 0
  #grownAt = 0

  /** @param starts The starts up to now. */
  constructor(known: QuotaLimit, starts: SlidingWindow) {
    this.#known = known
    this.#requests = known.requests
    this.#window = starts
  }

  /** The service refused the request that started at `startedAt`, and asks to continue at `resumesAt`. */
  refused(startedAt: number, now: number, resumesAt: number): void {
    // A late response to a request from before the pause says nothing about the limit since then.
    const isLate = now >= this.#resumesAt && startedAt < this.#resumesAt
    this.#resumesAt = resumesAt
    if (isLate) return
    this.#refused += 1
    this.#requests = Math.min(this.#requests, Math.max(1, this.#window.count(now) - this.#refused))
  }

  /** When the next request may start. */
  freeAt(now: number): number {
    // The service decides when to continue after a 429: the starts before it no longer count.
    return this.#refused > 0 ? now : this.#window.freeAt(now)
  }

  /** Counts a start. Returns whether the limit is still lower than the known one. */
  add(now: number): boolean {
    const { requests, window } = this.#known
    if (this.#refused > 0) {
      this.#refused = 0
      this.#grownAt = now
      this.#window = new SlidingWindow(this.#known, this.#requests)
    } else if (now - this.#grownAt >= window) {
      this.#grownAt = now
      this.#requests += Math.ceil(requests / 20)
      this.#window.allow(this.#requests)
    }
    this.#window.add(now)
    return this.#requests < requests
  }
}
