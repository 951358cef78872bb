import { compareTimers, KeyTimers } from '../../streams/timers.ts'
import type { NameRange, Timer, TimerChange } from '../../streams/timers.ts'
import type { TimersOptions } from '../store/process-store.ts'
import { firstIndex } from '../../protocol/first-index.ts'

/** The timers of a process, in their order. */
export class Timers {
  readonly #byKey = new Map<string, KeyTimers>()
  readonly #sorted: Readonly<Record<Timer['clock'], Timer[]>> = { event: [], recorded: [] }

  read({ clock, until, after, limit }: TimersOptions): Timer[] {
    const timers = this.#sorted[clock]
    const from = after === undefined ? 0 : firstIndex(timers, (timer) => compareTimers(timer, after) > 0)
    const found = timers.slice(from, from + limit)
    const end = found.findIndex(({ due }) => due > until)
    return end === -1 ? found : found.slice(0, end)
  }

  named(key: string, range: NameRange, limit: number): Timer[] {
    return this.#byKey.get(key)?.named(range, limit) ?? []
  }

  all(): readonly Timer[] {
    return [...this.#sorted.event, ...this.#sorted.recorded]
  }

  set(timer: TimerChange): void {
    const { key, name } = timer
    const names = this.#byKey.get(key) ?? new KeyTimers()
    const earlier = names.get(name)
    if (earlier !== undefined) {
      const timers = this.#sorted[earlier.clock]
      timers.splice(indexOf(timers, earlier), 1)
      names.delete(name)
    }
    if (timer.due !== null) {
      const timers = this.#sorted[timer.clock]
      timers.splice(indexOf(timers, timer), 0, timer)
      names.set(timer)
    }
    if (names.size > 0) this.#byKey.set(key, names)
    else this.#byKey.delete(key)
  }
}

function indexOf(timers: readonly Timer[], timer: Timer): number {
  return firstIndex(timers, (each) => compareTimers(each, timer) >= 0)
}
