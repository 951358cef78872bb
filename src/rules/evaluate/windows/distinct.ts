import type { WindowMatch, WindowState } from '../state.ts'
import { dropFirst, roomFor, upTo } from './window.ts'
import type { WindowKind } from './window.ts'

/** At least `gte` different values in (t − over, t]. */
export class DistinctWindow implements WindowKind {
  readonly family = 'hold'
  readonly #over: number
  readonly #gte: number
  readonly #room: number

  constructor(over: number, gte: number) {
    this.#over = over
    this.#gte = gte
    this.#room = roomFor(gte)
  }

  begin(): WindowState {
    return { t: [], v: [] }
  }

  apply(state: WindowState, time: number, match: WindowMatch): boolean {
    if (typeof match === 'number') return false
    this.at(state, time)
    const { t, v = [] } = state
    state.v = v
    for (const value of match) {
      // In the order of their last times: the values that leave first are first.
      const known = v.indexOf(value)
      if (known >= 0) {
        t.splice(known, 1)
        v.splice(known, 1)
      }
      t.push(time)
      v.push(value)
    }
    const excess = t.length - this.#room
    if (excess > 0) {
      dropFirst(excess, t, v)
      state.x = (state.x ?? 0) + excess
    }
    return false
  }

  deadline({ t }: WindowState): number | undefined {
    const decisive = t.length >= this.#gte ? t[t.length - this.#gte] : t.at(-1)
    return decisive === undefined ? undefined : decisive + this.#over
  }

  at({ t, v }: WindowState, time: number): boolean {
    dropFirst(upTo(t, time - this.#over), t, v)
    return false
  }

  holds({ t }: WindowState, time: number): boolean {
    return t.length - upTo(t, time - this.#over) >= this.#gte
  }

  value({ t }: WindowState, time: number): number | null {
    return t.length - upTo(t, time - this.#over)
  }

  reset(state: WindowState): void {
    state.t = []
    state.v = []
  }

  isEmpty({ t }: WindowState): boolean {
    return t.length === 0
  }
}
