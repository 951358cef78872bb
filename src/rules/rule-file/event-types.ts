import type { RuleEventType } from '../rule.ts'

/** The types of events that rules can read. A test checks that none is missing: an application may add types of its own. */
const TYPES = {
  'monitor.event_stream': true,
  'monitor.snapshot': true,
  'monitor.completion': true,
  'monitor.error': true,
  'monitor.cancelled': true,
  'task_group.status': true,
  'task_run.state': true,
  error: true,
  'stream.gap': true,
  'stream.oversized': true,
  'source.failed': true,
  'source.live': true,
  'source.lost': true,
  'log.gap': true,
  unknown: true,
} satisfies Partial<Record<RuleEventType, true>>

// `Object.keys` returns strings; the record has no other keys.
export const RULE_EVENT_TYPES = Object.keys(TYPES) as (keyof typeof TYPES)[]

/** What shows that a monitor works. An error does not. */
export const MONITOR_REPORTS: readonly RuleEventType[] = [
  'monitor.event_stream',
  'monitor.snapshot',
  'monitor.completion',
]
