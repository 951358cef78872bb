import type { RuleEventType } from '../rule.ts'

/** The types of events that rules can read. The compiler checks that none is missing. */
const TYPES: Readonly<Record<RuleEventType, true>> = {
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
}

// `Object.keys` returns strings; the record has no other keys.
export const RULE_EVENT_TYPES = Object.keys(TYPES) as RuleEventType[]

/** What shows that a monitor works. An error does not. */
export const MONITOR_REPORTS: readonly RuleEventType[] = [
  'monitor.event_stream',
  'monitor.snapshot',
  'monitor.completion',
]
