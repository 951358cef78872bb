import { eventTime, parsedTime } from '../clocks.ts'
import type { StreamEntry } from '../process-functions.ts'
import type { Span } from './dropped.ts'

const DAY = 86_400_000

/** The earliest time of an event, the start of year 1: a service may send any, and a window around it must begin in a year that RFC 3339 can write. Unix ms. */
const EARLIEST = -62_135_596_800_000

/** The place of an event in time. */
export interface Placed {
  /** Event time, in Unix ms. Of a whole day, its first moment. */
  readonly at: number
  /** Whether the event has no time of its own: it is where it came. */
  readonly isByArrival: boolean
  /** Whether it happened at some time of a day (UTC). */
  readonly isWholeDay: boolean
}

/** The place of an entry in time. The result of a window is at its last moment, so that it is in the longer window that has the same end. */
export function placed(entry: StreamEntry): Placed {
  const at = Math.max(eventTime(entry) - (entry.type === 'window.result' ? 1 : 0), EARLIEST)
  const { time } = entry
  const hasTime = time !== null && parsedTime(time) !== undefined
  return { at, isByArrival: !hasTime, isWholeDay: hasTime && /^\d{4}-\d{2}-\d{2}$/.test(time) }
}

/** The day (UTC) of a time. */
export function dayOf(at: number): Span {
  const start = Math.floor(at / DAY) * DAY
  return { start, end: start + DAY }
}
