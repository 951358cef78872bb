import { isObject, parts } from './event.ts'
import type { EventOf } from './event.ts'

/**
 * Anything that has an identity: the pair of `source` and `id`, as in CloudEvents, where an id is unique within its
 * source alone. Every `ResearchEvent` is one. Without a `source` the `id` is the identity.
 */
export interface Identified {
  readonly id: string
  readonly source?: string
}

/** What a copy of a fact tells beyond the bare fact, as bits; none for what is no `ResearchEvent`. */
export function partsOf(event: Identified): number {
  return isRunState(event) ? parts(event) : 0
}

/** Whether the event tells of a run, checked as far as {@link parts} relies on it: events may come from anywhere. */
function isRunState(event: Identified): event is EventOf<'task_run.state'> {
  if (!('type' in event) || event.type !== 'task_run.state') return false
  return 'data' in event && isObject(event.data) && isObject(event.data['run'])
}
