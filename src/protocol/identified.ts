import { completeness } from './event.ts'
import { isObject } from './json.ts'
import type { EventOf } from './event.ts'
import type { CANDIDATE_CHANGES } from './find-all.ts'

/**
 * Anything with an identity. It is the pair of `source` and `id`, as in CloudEvents, since an id is unique only within its source. Every
 * `ResearchEvent` has one. Without a `source`, the `id` is the identity.
 */
export interface Identified {
  readonly id: string
  readonly source?: string
}

/** See {@link completeness}; 0 for anything that is not a `ResearchEvent`. */
export function completenessOf(event: Identified): number {
  return isRunState(event) || isCandidateChange(event) ? completeness(event) : 0
}

/** Whether the event is of a run, checked as far as {@link completeness} relies on it: events may come from anywhere. */
export function isRunState(event: Identified): event is EventOf<'task_run.state'> {
  if (!('type' in event) || event.type !== 'task_run.state') return false
  return 'data' in event && isObject(event.data) && isObject(event.data['run'])
}

/** Whether the event is of a candidate of a FindAll run, checked in the same way. */
export function isCandidateChange(event: Identified): event is EventOf<(typeof CANDIDATE_CHANGES)[number]> {
  if (!('type' in event) || typeof event.type !== 'string' || !event.type.startsWith(CANDIDATE)) return false
  return 'data' in event && isObject(event.data) && isObject(event.data['data'])
}

const CANDIDATE = 'findall.candidate.'
