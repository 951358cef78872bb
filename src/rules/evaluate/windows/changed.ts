import type { WindowMatch, WindowState } from '../state.ts'
import type { WindowKind, WindowType } from './window.ts'
import type { WindowSettings } from '../../compiled-rule.ts'
import { unorderedHash } from '../../../protocol/identity.ts'
import { valueText } from '../key.ts'

/** How long a value is kept without another event, in ms. */
export const VALUE_KEPT = 30 * 24 * 3_600_000

/** Matches an event whose value differs from the value of the event before. */
class ChangedWindow implements WindowKind {
  apply(state: WindowState, time: number, match: WindowMatch): false | { readonly value: string } {
    const [value, text = ''] = typeof match === 'number' ? [] : match
    if (value === undefined) return false
    const before = state.hashes?.[0]
    state.times = [time]
    state.hashes = [value]
    return before !== undefined && before !== value ? { value: text } : false
  }

  deadline({ times: [time] }: WindowState): number | undefined {
    return time === undefined ? undefined : time + VALUE_KEPT
  }

  at(state: WindowState, time: number): boolean {
    if ((this.deadline(state) ?? Infinity) <= time) {
      state.times = []
      state.hashes = []
    }
    return false
  }
}

export const changed: WindowType<WindowSettings['changed']> = {
  create: () => new ChangedWindow(),
  match({ value: expression }, { valueOf }) {
    const value = valueOf(expression)
    return value === undefined ? null : [unorderedHash(value), valueText(value)]
  },
}
