import { shownValue } from '../key.ts'
import type { WindowMatch, WindowState } from '../state.ts'
import { dropFirst, roomFor, upTo } from './window.ts'
import type { WindowKind } from './window.ts'

/** A value that no event before had in [t − within, t]. The value of the pulse is the text of all that are new. */
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

  apply(state: WindowState, time: number, match: WindowMatch): false | { readonly value: string } {
    if (typeof match === 'number') return false
    this.at(state, time)
    const { t, v = [] } = state
    state.v = v
    const fresh: string[] = []
    for (let index = 0; index + 1 < match.length; index += 2) {
      const [value = '', text = ''] = match.slice(index, index + 2)
      const known = v.indexOf(value)
      if (known >= 0) {
        t.splice(known, 1)
        v.splice(known, 1)
      } else fresh.push(text)
      t.push(time)
      v.push(value)
    }
    const excess = t.length - this.#room
    if (excess > 0) {
      dropFirst(excess, t, v)
      state.x = (state.x ?? 0) + excess
    }
    return fresh.length > 0 && { value: shownValue(fresh.join(', ')) }
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

  // Known values stay known.
  reset(): void {}

  isEmpty({ t }: WindowState): boolean {
    return t.length === 0
  }
}
