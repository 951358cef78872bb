import type { ResearchEvent } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import { eventTime, parsedTime } from '../../streams/clocks.ts'

/** An event, with the fields of its log entry if it comes from a log. */
export type RuleInput = ResearchEvent & {
  /** When a log recorded it, in Unix ms. */
  readonly recorded?: number
  readonly revision?: number
  readonly backfill?: boolean
}

/** A day, a month or a year (§2.2). */
const EVENT_DATE = /^\d{4}(?:-\d{2}(?:-\d{2})?)?$/

/**
 * The time at which rules place an event. A fuller revision counts when it came. An event of a first walk into the past counts at
 * the beginning of its `event_date`.
 */
export function placedAt(event: RuleInput): number {
  const { received, recorded, revision = 1, backfill = false } = event
  if (revision > 1) {
    const arrived = parsedTime(received) ?? recorded ?? 0
    return Math.min(arrived, recorded ?? arrived)
  }
  const at = eventTime(event)
  if (!backfill) return at
  return Math.min(dateOf(event.data) ?? at, recorded ?? Infinity)
}

function dateOf(data: unknown): number | undefined {
  const date = isObject(data) ? data['event_date'] : undefined
  return typeof date === 'string' && EVENT_DATE.test(date) ? parsedTime(date) : undefined
}
