import { isAppEventType } from '../../protocol/app-event-type.ts'
import { EVENT_TYPES, familyOf, isTimeEventType } from '../../protocol/event-types.ts'
import type { OwnEventType } from '../../protocol/event-types.ts'
import type { RuleEventType } from '../rule.ts'

/** The types of events of this package that rules can read. */
export const RULE_EVENT_TYPES = EVENT_TYPES.filter(
  (type): type is OwnEventType & RuleEventType => familyOf(type) !== 'alert' && !isTimeEventType(type),
)

/** Whether rules can read events of this type: one of ours, or one that an application can declare. */
export function isEventType(type: string): boolean {
  return RULE_EVENT_TYPES.some((known) => known === type) || isAppEventType(type, RULE_EVENT_TYPES)
}

/** The types of events that show that a monitor works. An error does not. */
export const MONITOR_REPORTS: readonly RuleEventType[] = [
  'monitor.event_stream',
  'monitor.snapshot',
  'monitor.completion',
]
