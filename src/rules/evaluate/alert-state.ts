import type { RuleState } from './state.ts'

/** How long an alert waits and stays, in ms. */
export interface AlertTimes {
  readonly for: number
  readonly keepFiringFor: number
}

/** The change of an alert. */
export type AlertChange = 'firing' | 'resolved' | undefined

/**
 * Moves an alert to its next state, given its level at a time. It is inactive, then pending while `trueSince` is there without
 * `fired`, then firing with `fired`, then kept while `falseSince` is there. The caller sets `fired` for `firing`, and calls {@link end} for
 * `resolved`.
 */
export function step(state: RuleState, time: number, level: boolean, times: AlertTimes): AlertChange {
  if (level) {
    state.trueSince ??= time
    delete state.falseSince
    delete state.isExpired
    return state.fired === undefined && time >= state.trueSince + times.for ? 'firing' : undefined
  }
  if (state.trueSince === undefined) return undefined
  if (state.fired === undefined) {
    end(state)
    return undefined
  }
  state.falseSince ??= time
  return time >= state.falseSince + times.keepFiringFor ? 'resolved' : undefined
}

/** The alert is inactive again. */
export function end(state: RuleState): void {
  delete state.trueSince
  delete state.fired
  delete state.falseSince
  delete state.isExpired
}

/** When the alert changes without a change of its level; undefined for never. */
export function alertDeadline(
  { trueSince, fired, falseSince }: RuleState,
  times: AlertTimes,
): number | undefined {
  if (trueSince === undefined) return undefined
  if (fired === undefined) return trueSince + times.for
  return falseSince === undefined ? undefined : falseSince + times.keepFiringFor
}
