import type { WindowState } from '../state.ts'
import { dropExcess, dropUpTo, roomFor, upTo } from './window.ts'
import type { WindowKind, WindowType } from './window.ts'
import type { WindowSettings } from '../../compiled-rule.ts'

/** Holds with at least `factor` times the events of (t − 2 · over, t − over] in (t − over, t], and at least `min`. */
class SpikeWindow implements WindowKind {
  readonly #settings: WindowSettings['spike']
  readonly #over: number

  constructor(settings: WindowSettings['spike']) {
    this.#settings = settings
    this.#over = settings.over
  }

  apply(state: WindowState, time: number): boolean {
    this.at(state, time)
    state.times.push(time)
    dropExcess(state, roomFor(this.#settings.min))
    return false
  }

  deadline({ times, lastDropped }: WindowState, now: number): number | undefined {
    const deadlines = lastDropped === undefined ? [] : [lastDropped + 2 * this.#over]
    const [first] = times
    if (first !== undefined) deadlines.push(first + 2 * this.#over)
    // The first event of the window now: those before it have left it.
    const next = times[upTo(times, now - this.#over)]
    if (next !== undefined) deadlines.push(next + this.#over)
    return deadlines.length === 0 ? undefined : Math.min(...deadlines)
  }

  at(state: WindowState, time: number): boolean {
    dropUpTo(state, time - 2 * this.#over)
    if (state.lastDropped !== undefined && state.lastDropped <= time - 2 * this.#over)
      delete state.lastDropped
    return false
  }

  holds(state: WindowState, time: number): boolean {
    const { times, lastDropped } = state
    const { min, factor } = this.#settings
    if (lastDropped !== undefined && lastDropped > time - 2 * this.#over) return false
    const before = upTo(times, time - this.#over)
    const old = upTo(times, time - 2 * this.#over)
    return times.length - before >= Math.max(min, factor * (before - old))
  }

  value({ times }: WindowState, time: number): number | null {
    return times.length - upTo(times, time - this.#over)
  }

  reset(state: WindowState): void {
    state.times = []
    delete state.lastDropped
  }

  isEmpty({ times, lastDropped }: WindowState): boolean {
    return times.length === 0 && lastDropped === undefined
  }
}

export const spike: WindowType<WindowSettings['spike']> = {
  create: (settings) => new SpikeWindow(settings),
  needed: ({ min }) => min,
}
