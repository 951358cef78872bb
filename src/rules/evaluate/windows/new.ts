import { MAX_VALUE_TEXT, truncated, valueText } from '../key.ts'
import type { WindowMatch, WindowState } from '../state.ts'
import { addValue, dropExcess, dropUpTo, membersOf, roomFor } from './window.ts'
import type { WindowKind, WindowType } from './window.ts'
import type { WindowSettings } from '../../compiled-rule.ts'
import { unorderedHash } from '../../../protocol/identity.ts'

/** Maximum length of a list that is read, since a held event keeps the text of each member. */
const MAX_MEMBERS = 100

/** A value that no event before had in [t − within, t]. The value of the pulse is the text of all that are new. */
class NewWindow implements WindowKind {
  readonly #within: number

  constructor(within: number) {
    this.#within = within
  }

  apply(state: WindowState, time: number, match: WindowMatch): false | { readonly value: string } {
    if (typeof match === 'number') return false
    this.at(state, time)
    const fresh: string[] = []
    for (let index = 0; index + 1 < match.length; index += 2) {
      const [hash = '', text = ''] = match.slice(index, index + 2)
      if (!addValue(state, time, hash)) fresh.push(text)
    }
    dropExcess(state, roomFor(0))
    return fresh.length > 0 && { value: truncated(fresh.join(', '), MAX_VALUE_TEXT) }
  }

  deadline({ times }: WindowState): number | undefined {
    const last = times.at(-1)
    return last === undefined ? undefined : last + this.#within + 1
  }

  at(state: WindowState, time: number): boolean {
    dropUpTo(state, time - this.#within - 1)
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
