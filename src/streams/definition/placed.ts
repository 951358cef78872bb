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

/** The place of an entry in time. */
export function placed(entry: StreamEntry): Placed {
  const at = Math.max(timeOf(entry), EARLIEST)
  const { time } = entry
  const hasTime = time !== null && parsedTime(time) !== undefined
  return { at, isByArrival: !hasTime, isWholeDay: hasTime && /^\d{4}-\d{2}-\d{2}$/.test(time) }
}

/** Event time, in Unix ms. Of a result of another definition, what the result is about. */
function timeOf(entry: StreamEntry): number {
  const at = eventTime(entry)
  // A window includes its last moment, and not its end: then the result is in a longer window that ends with it.
  if (entry.type === 'window.result') return at - 1
  if (entry.type !== 'join.result') return at
  // Without a partner, it comes once the watermark has passed the last moment of one. At an earlier time, it would be late.
  return entry.cause?.timer === undefined ? Math.min(parsedTime(entry.data.time) ?? at, at) : at - 1
}

/** The place of a time among the names of timers: the same length for each time, in their order. */
export function timeText(at: number): string {
  return String(Math.max(at - EARLIEST, 0)).padStart(16, '0')
}

/** The day (UTC) of a time. */
export function dayOf(at: number): Span {
  const start = Math.floor(at / DAY) * DAY
  return { start, end: start + DAY }
}
