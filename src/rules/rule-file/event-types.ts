import { nearestName } from '../../protocol/check.ts'
import { EVENT_TYPES, familyOf } from '../../protocol/event-types.ts'
import type { OwnEventType } from '../../protocol/event-types.ts'
import type { RuleEventType } from '../rule.ts'

/** The types of events of this package that rules can read. */
export const RULE_EVENT_TYPES = EVENT_TYPES.filter(
  (type): type is OwnEventType & RuleEventType => familyOf(type) !== 'alert' && type !== 'log.tick',
)

const FAMILIES = new Set(EVENT_TYPES.filter((type) => type.includes('.')).map(familyOf))

/** A type that is not ours. The first words of our types are excluded: such a type is misspelled, or the service may get it later. */
export const OWN_EVENT_TYPE = new RegExp(
  `^(?!(?:${[...FAMILIES].join('|')})\\.)[\\w-]{1,60}(?:\\.[\\w-]{1,60}){1,5}$`,
)

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
