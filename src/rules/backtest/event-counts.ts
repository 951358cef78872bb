/** How many events there were, in equal spans of time. */
export interface EventCounts {
  /** When the first span begins, in Unix ms. */
  readonly from: number
  /** The length of a span, in ms. */
  readonly step: number
  readonly counts: readonly number[]
}

/** The most spans. */
const MAX_SPANS = 2_048

/** Counts events by time, in bounded memory: two spans become one when there are too many. */
export class EventCounter {
  readonly #counts = new Map<number, number>()
  #step = 1_000
  #first = Infinity
  #last = -Infinity

  /** @param at Unix ms. */
  add(at: number): void {
    const span = Math.floor(at / this.#step)
    this.#counts.set(span, (this.#counts.get(span) ?? 0) + 1)
    this.#first = Math.min(this.#first, span)
    this.#last = Math.max(this.#last, span)
    while (this.#last - this.#first >= MAX_SPANS) this.#halve()
  }

  get counts(): EventCounts {
    if (this.#last < this.#first) return { from: 0, step: this.#step, counts: [] }
    const counts = Array.from(
      { length: this.#last - this.#first + 1 },
      (_, index) => this.#counts.get(this.#first + index) ?? 0,
    )
    return { from: this.#first * this.#step, step: this.#step, counts }
  }

  #halve(): void {
    const before = [...this.#counts]
    this.#counts.clear()
    for (const [span, count] of before) {
      const wider = Math.floor(span / 2)
      this.#counts.set(wider, (this.#counts.get(wider) ?? 0) + count)
    }
    this.#step *= 2
    this.#first = Math.floor(this.#first / 2)
    this.#last = Math.floor(this.#last / 2)
  }
}
