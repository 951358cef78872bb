import { compareTimers } from '../store/process-store.ts'
import type { Timer } from '../store/process-store.ts'

/** A binary heap of timers, in the order in which they fire. */
export class TimerHeap<Each extends Pick<Timer, 'due' | 'key' | 'name'>> {
  readonly #timers: Each[] = []

  /** The next one to fire. */
  get first(): Each | undefined {
    return this.#timers[0]
  }

  get size(): number {
    return this.#timers.length
  }

  clear(): void {
    this.#timers.length = 0
  }

  push(timer: Each): void {
    const timers = this.#timers
    let at = timers.length
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = timers[above]
      if (parent === undefined || compareTimers(parent, timer) <= 0) break
      timers[at] = parent
      at = above
    }
    timers[at] = timer
  }

  /** Removes the first one. */
  shift(): void {
    const timers = this.#timers
    const last = timers.pop()
    if (last === undefined || timers.length === 0) return
    let at = 0
    for (;;) {
      const left = timers[2 * at + 1]
      const right = timers[2 * at + 2]
      if (left === undefined) break
      const isRight = right !== undefined && compareTimers(right, left) < 0
      const child = isRight ? right : left
      if (compareTimers(last, child) <= 0) break
      timers[at] = child
      at = 2 * at + (isRight ? 2 : 1)
    }
    timers[at] = last
  }
}
