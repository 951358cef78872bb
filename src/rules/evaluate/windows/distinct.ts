import type { WindowMatch, WindowState } from '../state.ts'
import { CountWindow } from './count.ts'
import { dropFirst, roomFor } from './window.ts'

/** Holds with at least `gte` different values in (t − over, t]: it counts values by their last times. */
export class DistinctWindow extends CountWindow {
  readonly #room: number

  constructor(over: number, gte: number) {
    super(over, gte)
    this.#room = roomFor(gte)
  }

  override begin(): WindowState {
    return { t: [], v: [] }
  }

  override apply(state: WindowState, time: number, match: WindowMatch): boolean {
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

  override reset(state: WindowState): void {
    state.t = []
    state.v = []
  }
}
