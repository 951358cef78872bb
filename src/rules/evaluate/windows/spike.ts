import type { WindowState } from '../state.ts'
import { dropFirst, roomFor, upTo } from './window.ts'
import type { WindowKind } from './window.ts'

/** Holds with at least `factor` times the events of (t − 2 · over, t − over] in (t − over, t], and at least `min`. */
export class SpikeWindow implements WindowKind {
  readonly family = 'hold'
  readonly #over: number
  readonly #factor: number
  readonly #min: number
  readonly #room: number

  constructor(over: number, factor: number, min: number) {
    this.#over = over
    this.#factor = factor
    this.#min = min
    this.#room = roomFor(min)
  }

  begin(): WindowState {
    return { t: [] }
  }

  apply(state: WindowState, time: number): boolean {
    this.at(state, time)
    state.t.push(time)
    if (state.t.length > this.#room) {
      state.o = state.t[0] ?? time
      dropFirst(1, state.t)
      state.x = (state.x ?? 0) + 1
    }
    return false
  }

  deadline({ t, o }: WindowState, now: number): number | undefined {
    const times = o === undefined ? [] : [o + 2 * this.#over]
    const [first] = t
    if (first !== undefined) times.push(first + 2 * this.#over)
    // The first event of the window now: those before it have left it.
    const next = t[upTo(t, now - this.#over)]
    if (next !== undefined) times.push(next + this.#over)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  at(state: WindowState, time: number): boolean {
    dropFirst(upTo(state.t, time - 2 * this.#over), state.t)
    if (state.o !== undefined && state.o <= time - 2 * this.#over) delete state.o
    return false
  }

  holds(state: WindowState, time: number): boolean {
    const { t, o } = state
    if (o !== undefined && o > time - 2 * this.#over) return false
    const before = upTo(t, time - this.#over)
    const old = upTo(t, time - 2 * this.#over)
    return t.length - before >= Math.max(this.#min, this.#factor * (before - old))
  }

  value({ t }: WindowState, time: number): number | null {
    return t.length - upTo(t, time - this.#over)
  }

  reset(state: WindowState): void {
    state.t = []
    delete state.o
  }

  isEmpty({ t, o }: WindowState): boolean {
    return t.length === 0 && o === undefined
  }
}
