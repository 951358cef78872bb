import { nearestName } from '../../protocol/check.ts'
import type { RuleEventType } from '../rule.ts'

/** The types of events that rules can read. Written by hand: add a new type here. */
const TYPES = {
  'monitor.event_stream': true,
  'monitor.snapshot': true,
  'monitor.completion': true,
  'monitor.error': true,
  'monitor.cancelled': true,
  'task_group.status': true,
  'task_run.state': true,
  'task_run.progress_stats': true,
  'task_run.progress_msg': true,
  'findall.status': true,
  'findall.candidate.generated': true,
  'findall.candidate.matched': true,
  'findall.candidate.unmatched': true,
  'findall.candidate.discarded': true,
  'findall.candidate.enriched': true,
  'findall.schema.updated': true,
  error: true,
  'stream.gap': true,
  'stream.oversized': true,
  'source.failed': true,
  'source.live': true,
  'source.lost': true,
  'log.gap': true,
  'log.clock': true,
  'gateway.search': true,
  'gateway.session': true,
  'gateway.revoked': true,
  unknown: true,
} satisfies Partial<Record<RuleEventType, true>>

// `Object.keys` returns strings; the record has no other keys.
export const RULE_EVENT_TYPES = Object.keys(TYPES) as (keyof typeof TYPES)[]

/** A type that is not ours. The first words of our types are excluded: such a type is misspelled, or the service may get it later. */
export const OWN_EVENT_TYPE =
  /^(?!(?:monitor|task_group|task_run|findall|stream|source|log|alert|gateway)\.)[\w-]{1,60}(?:\.[\w-]{1,60}){1,5}$/

/** Whether rules can read events of this type: one of ours, or one that does not look like a misspelled one of ours. */
export function isEventType(type: string): boolean {
  if (RULE_EVENT_TYPES.some((known) => known === type)) return true
  return OWN_EVENT_TYPE.test(type) && nearestName(type, RULE_EVENT_TYPES) === undefined
}

/** The types of events that show that a monitor works. An error does not. */
export const MONITOR_REPORTS: readonly RuleEventType[] = [
  'monitor.event_stream',
  'monitor.snapshot',
  'monitor.completion',
]
