import { ArgumentError } from '../../../protocol/argument-error.ts'
import type { CompiledRule, Window, WindowSettings } from '../../compiled-rule.ts'
import type { WindowMatch } from '../state.ts'
import { aggregates } from './aggregate.ts'
import { changed } from './changed.ts'
import { count, distinct, rate } from './count.ts'
import { newValue } from './new.ts'
import { sequence } from './sequence.ts'
import { spike } from './spike.ts'
import { MAX_NEEDED } from './window.ts'
import type { Reading, WindowKind, WindowType } from './window.ts'

/** The kinds of windows. */
const WINDOWS: { readonly [Kind in keyof WindowSettings]: WindowType<WindowSettings[Kind]> } = {
  count,
  rate,
  distinct,
  spike,
  ...aggregates,
  new: newValue,
  changed,
  sequence,
  // Evaluated elsewhere: it is about time, not about events.
  absence: { create: () => undefined },
}

/** The windows of a rule. Throws an ArgumentError for one that asks for more than a window has room for. */
export function windowsOf({ name, windows }: Pick<CompiledRule, 'name' | 'windows'>): readonly WindowKind[] {
  return windows.flatMap((window) => created(name, window) ?? [])
}

function created<Kind extends keyof WindowSettings>(
  rule: string,
  window: Window<Kind>,
): WindowKind | undefined {
  const type = WINDOWS[window.kind]
  const needed = type.needed?.(window) ?? 0
  if (needed > MAX_NEEDED)
    throw new ArgumentError(rule, `at most ${MAX_NEEDED} events or values within a window`, needed)
  return type.create(window, rule)
}

/** What an event means for a window; null for nothing. */
export function matchOf<Kind extends keyof WindowSettings>(
  window: Window<Kind>,
  reading: Reading,
): WindowMatch | null {
  const { match } = WINDOWS[window.kind]
  if ('when' in window && window.when !== undefined && !reading.holds(window.when)) return null
  return match === undefined ? 1 : match(window, reading)
}
