import type { Rule } from '../rule.ts'
import { parseDuration } from '../../protocol/duration.ts'

const DEFAULT_LATENESS = 60_000
const DEFAULT_AFTER = 3_600_000
const DEFAULT_AFTER_PER_EVENT = 300_000

/** How long after its last event an alert ends, in ms. */
export function resolveAfter({ resolve, per }: Rule): number {
  const after = resolve?.after === undefined ? undefined : parseDuration(resolve.after)
  return after ?? (per === 'event' ? DEFAULT_AFTER_PER_EVENT : DEFAULT_AFTER)
}

/** How late events may come, in ms: the setting of the rule, or its default. @param isOrdered Whether the order of events matters. */
export function lateness({ lateness: given }: Rule, isOrdered: boolean): number {
  const ms = given === undefined ? undefined : parseDuration(given)
  return ms ?? (isOrdered ? DEFAULT_LATENESS : 0)
}
