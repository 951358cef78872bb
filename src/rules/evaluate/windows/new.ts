import { MAX_VALUE_TEXT, truncated, valueText } from '../key.ts'
import type { WindowMatch, WindowState } from '../state.ts'
import { dropFirst, membersOf, roomFor, upTo } from './window.ts'
import type { WindowKind, WindowType } from './window.ts'
import type { WindowSettings } from '../../compiled-rule.ts'
import { unorderedHash } from '../../../protocol/identity.ts'

/** Maximum length of a list that is read, since a held event keeps the text of each member. */
const MAX_MEMBERS = 100

/** A value that no event before had in [t − within, t]. The value of the pulse is the text of all that are new. */
class NewWindow implements WindowKind {
  readonly #within: number
  readonly #room = roomFor(0)

  constructor(within: number) {
    this.#within = within
  }

  begin(): WindowState {
    return { times: [], hashes: [] }
  }

  apply(state: WindowState, time: number, match: WindowMatch): false | { readonly value: string } {
    if (typeof match === 'number') return false
    this.at(state, time)
    const { times, hashes = [] } = state
    state.hashes = hashes
    const fresh: string[] = []
    for (let index = 0; index + 1 < match.length; index += 2) {
      const [hash = '', text = ''] = match.slice(index, index + 2)
      const known = hashes.indexOf(hash)
      if (known >= 0) {
        times.splice(known, 1)
        hashes.splice(known, 1)
      } else fresh.push(text)
      times.push(time)
      hashes.push(hash)
    }
    const excess = times.length - this.#room
    if (excess > 0) {
      dropFirst(excess, times, hashes)
      state.dropped = (state.dropped ?? 0) + excess
    }
    return fresh.length > 0 && { value: truncated(fresh.join(', '), MAX_VALUE_TEXT) }
  }

  deadline({ times }: WindowState): number | undefined {
    const last = times.at(-1)
    return last === undefined ? undefined : last + this.#within + 1
  }

  at({ times, hashes }: WindowState, time: number): boolean {
    dropFirst(upTo(times, time - this.#within - 1), times, hashes)
    return false
  }
}

export const newValue: WindowType<WindowSettings['new']> = {
  create: ({ within }) => new NewWindow(within),
  match({ value: expression }, { valueOf }) {
    const value = valueOf(expression)
    const members = value === undefined ? [] : membersOf(value, MAX_MEMBERS)
    const texts = new Map(members.map((member) => [unorderedHash(member), valueText(member)]))
    return texts.size === 0 ? null : [...texts].flat()
  },
}
