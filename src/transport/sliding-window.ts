import type { QuotaLimit } from '../protocol/quotas.ts'

/** The most times that a window remembers. Beyond it, several starts share the time of the last of them. */
const MAX_TIMES = 600

/** The starts within the last window, of which none ever has more than the limit. Times are in ms and must not decrease. */
export class SlidingWindow {
  readonly #length: number
  readonly #startsPerTime: number
  #requests: number
  /** Oldest first. */
  readonly #times: { time: number; starts: number }[] = []
  #starts = 0

  /** @param requests A lower limit than the known one. */
  constructor(known: QuotaLimit, requests = known.requests) {
    this.#length = known.window
    this.#startsPerTime = Math.ceil(known.requests / MAX_TIMES)
    this.#requests = requests
  }

  /** The number of starts that count now. */
  count(now: number): number {
    for (;;) {
      const [oldest] = this.#times
      if (oldest === undefined || oldest.time + this.#length > now) return this.#starts
      this.#starts -= oldest.starts
      this.#times.shift()
    }
  }

  /** When the next request may start. */
  freeAt(now: number): number {
    if (this.count(now) < this.#requests) return now
    const [oldest] = this.#times
    return oldest === undefined ? now : oldest.time + this.#length
  }

  add(now: number): void {
    const last = this.#times.at(-1)
    this.#starts += 1
    if (last === undefined || last.starts >= this.#startsPerTime) this.#times.push({ time: now, starts: 1 })
    else Object.assign(last, { time: now, starts: last.starts + 1 })
  }

  /** Raises the limit. */
  allow(requests: number): void {
    this.#requests = requests
  }
}
