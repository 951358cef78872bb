import type { RuleState } from './state.ts'

/** How long an alert waits and stays, in ms. */
export interface AlertTimes {
  readonly for: number
  readonly keepFiringFor: number
}

/** The change of an alert. */
export type Transition = 'firing' | 'resolved' | undefined

/**
 * Moves an alert to its next state, given its level at a time. It is inactive, then pending while `s` is there without `f`, then firing
 * with `f`, then kept while `q` is there. The caller sets `f` for `firing`, and calls {@link end} for `resolved`.
 */
export function step(state: RuleState, time: number, level: boolean, times: AlertTimes): Transition {
  if (level) {
    state.s ??= time
    delete state.q
    delete state.x
    return state.f === undefined && time >= state.s + times.for ? 'firing' : undefined
  }
  if (state.s === undefined) return undefined
  if (state.f === undefined) {
    end(state)
    return undefined
  }
  state.q ??= time
  return time >= state.q + times.keepFiringFor ? 'resolved' : undefined
}

/** The alert is inactive again. */
export function end(state: RuleState): void {
  delete state.s
  delete state.f
  delete state.q
  delete state.x
}

/** When the alert changes without a change of its level; undefined for never. */
export function alertDeadline({ s, f, q }: RuleState, times: AlertTimes): number | undefined {
  if (s === undefined) return undefined
  if (f === undefined) return s + times.for
  return q === undefined ? undefined : q + times.keepFiringFor
}
