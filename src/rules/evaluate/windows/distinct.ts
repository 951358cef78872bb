import type { WindowMatch, WindowState } from '../state.ts'
import { CountWindow } from './count.ts'
import { dropFirst, MAX_NEEDED, membersOf } from './window.ts'
import type { WindowSettings } from '../../compiled-rule.ts'
import type { WindowType } from './window.ts'
import { unorderedHash } from '../../../protocol/identity.ts'

/** Holds with at least `gte` different values in (t − over, t]: it counts values by their last times. */
class DistinctWindow extends CountWindow {
  override begin(): WindowState {
    return { times: [], hashes: [] }
  }

  override apply(state: WindowState, time: number, match: WindowMatch): boolean {
    if (typeof match === 'number') return false
    this.at(state, time)
    const { times, hashes = [] } = state
    state.hashes = hashes
    for (const hash of match) {
      // In the order of their last times: the values that leave first are first.
      const known = hashes.indexOf(hash)
      if (known >= 0) {
        times.splice(known, 1)
        hashes.splice(known, 1)
      }
      times.push(time)
      hashes.push(hash)
    }
    const excess = times.length - this.room
    if (excess > 0) {
      dropFirst(excess, times, hashes)
      state.dropped = (state.dropped ?? 0) + excess
    }
    return false
  }

  override reset(state: WindowState): void {
    state.times = []
    state.hashes = []
  }
}

export const distinct: WindowType<WindowSettings['distinct']> = {
  create: ({ over, gte }) => new DistinctWindow(over, gte),
  needed: ({ gte }) => gte,
  match({ value: expression }, { valueOf }) {
    const value = valueOf(expression)
    const members = value === undefined ? [] : membersOf(value, MAX_NEEDED)
    return members.length === 0 ? null : [...new Set(members.map((member) => unorderedHash(member)))]
  },
}
