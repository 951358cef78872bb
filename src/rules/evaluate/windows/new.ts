import type { WindowMatch, WindowState } from '../state.ts'
import { dropFirst, roomFor, upTo } from './window.ts'
import type { WindowKind } from './window.ts'

/** A value that no event before had in [t − within, t]. */
export class NewWindow implements WindowKind {
  readonly family = 'pulse'
  readonly #within: number
  readonly #room = roomFor(0)

  constructor(within: number) {
    this.#within = within
  }

  begin(): WindowState {
    return { t: [], v: [] }
  }

  apply(state: WindowState, time: number, match: WindowMatch): boolean {
    const value = typeof match === 'number' ? undefined : match[0]
    if (value === undefined) return false
    this.at(state, time)
    const { t, v = [] } = state
    state.v = v
    const known = v.indexOf(value)
    if (known >= 0) {
      t.splice(known, 1)
      v.splice(known, 1)
    }
    t.push(time)
    v.push(value)
    if (t.length > this.#room) {
      dropFirst(1, t, v)
      state.x = (state.x ?? 0) + 1
    }
    return known < 0
  }

  deadline({ t }: WindowState): number | undefined {
    const last = t.at(-1)
    return last === undefined ? undefined : last + this.#within + 1
  }

  at({ t, v }: WindowState, time: number): boolean {
    dropFirst(upTo(t, time - this.#within - 1), t, v)
    return false
  }

  holds(): boolean {
    return false
  }

  value(): number | null {
    return null
  }

  // What is known stays known.
  reset(): void {}

  isEmpty({ t }: WindowState): boolean {
    return t.length === 0
  }
}
