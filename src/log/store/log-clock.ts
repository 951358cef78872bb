import type { EventOf, LogClock } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import { CLOCK_SOURCE, clockEvent } from '../../protocol/log-event.ts'
import { newEntry } from './new-entry.ts'
import type { PreparedEntry } from './new-entry.ts'

/** A difference that is no jump, in ms: a clock that is corrected by a few seconds is believed at once. */
export const TOLERANCE = 10_000

/** How long a jump forward must last until it is believed, in ms of the monotonic clock. */
export const CONFIRMATION = 10 * 60_000

/** Maximum advance of the time between two appends while the wall clock is behind, in ms: the monotonic clock may be another machine's. */
const MAX_STEP = 5 * 60_000

/** A jump of the wall clock that is not believed. */
interface Jump {
  /** The monotonic clock when it was seen first, in ms. */
  readonly since: number
  /** Lead of the wall clock over the log at that moment, in ms; negative if it was behind. */
  readonly by: number
}

/** The time of a log at its last entry. */
export interface LogTime {
  /** When the last entry was recorded, in Unix ms; 0 for none. */
  readonly time: number
  /** The monotonic clock then, in ms. It begins anew when the machine starts. */
  readonly monotonic: number
  /** A jump of the wall clock that is not confirmed, or null. */
  readonly jump: Jump | null
}

/** The clocks of a writer. */
export interface WallAndMonotonic {
  /** Unix time in ms, which may be set. */
  readonly wall: () => number
  /** A clock in ms that is never set. */
  readonly monotonic: () => number
}

/** The clocks of a writer. A clock of the user's own is never set, so it is both. */
export function clocksOf(wall: () => number, monotonic: () => number): WallAndMonotonic {
  return { wall, monotonic: wall === Date.now ? monotonic : wall }
}

/** The time of a log now, and the change of the wall clock. */
export interface NextTime extends LogTime {
  /** Change of the wall clock; undefined if nothing has changed. */
  readonly change: LogClock | undefined
}

/**
 * Returns the time of a log: that of the wall clock, unless the wall clock has jumped. While a jump forward is not confirmed, and while
 * the wall clock is behind, the time goes on by the monotonic clock. So one glitch of the clock neither deletes entries by their age nor
 * stops timers for a year.
 *
 * A machine that was off or suspended looks like a jump forward: that time counts once it is confirmed.
 *
 * @param isConfirmable Whether another clock agrees with the wall clock. Default true.
 */
export function nextTime(before: LogTime, clocks: WallAndMonotonic, isConfirmable = true): NextTime {
  const [wall, monotonic] = [Math.floor(clocks.wall()), Math.floor(clocks.monotonic())]
  const { time: last, jump: earlier } = before
  if (last === 0 || isOwn(clocks)) {
    return { time: Math.max(last, wall), monotonic, jump: null, change: undefined }
  }
  const elapsed = Math.max(0, monotonic - before.monotonic)
  const expected = last + elapsed
  const at = (time: number, state: LogClock['state'], by: number) => ({ state, by, at: time })
  const ahead = wall - expected
  if (ahead > TOLERANCE) {
    // The lead may grow, if a machine is suspended again and again.
    const isSame = earlier !== null && earlier.by > 0 && ahead >= earlier.by - TOLERANCE
    const jump = isSame
      ? { since: Math.min(earlier.since, monotonic), by: Math.min(earlier.by, ahead) }
      : { since: monotonic, by: ahead }
    if (isConfirmable && monotonic - jump.since >= CONFIRMATION) {
      const rest = ahead - jump.by
      const time = rest > TOLERANCE ? expected + jump.by : wall
      const next = rest > TOLERANCE ? { since: monotonic, by: rest } : null
      return { time, monotonic, jump: next, change: at(time, 'accepted', jump.by) }
    }
    const isNew = earlier === null || earlier.by < 0
    return { time: expected, monotonic, jump, change: isNew ? at(expected, 'ahead', ahead) : undefined }
  }
  if (wall < last - TOLERANCE) {
    const time = last + Math.min(elapsed, MAX_STEP)
    const isNew = earlier === null || earlier.by > 0
    const jump = { since: monotonic, by: wall - time }
    return { time, monotonic, jump, change: isNew ? at(time, 'behind', jump.by) : undefined }
  }
  const time = Math.max(last, wall)
  const change = earlier === null ? undefined : at(time, 'returned', wall - time)
  return { time, monotonic, jump: null, change }
}

/** Whether it is a clock of the user's own, as in a test, which is never set and is believed at once. */
export function isOwn({ wall, monotonic }: WallAndMonotonic): boolean {
  return wall === monotonic
}

/** Whether entries may be deleted by their age: not while the wall clock may be right in that more time has passed. */
export function isTimeCertain({ jump }: LogTime): boolean {
  return jump === null || jump.by < 0
}

/**
 * Returns the time before which entries may be deleted by their age.
 *
 * The entries that were recorded while a jump forward was not confirmed have times that are too early by this jump. If the clock
 * had jumped again before the confirmation, they are too early by the next jump too. They count as recorded so much later.
 *
 * @param recordedBefore The same, by the times of the entries alone.
 * @param changes All changes of the clock that the log still has, in order.
 */
export function ageLimit(recordedBefore: number, changes: Iterable<LogClock>): number {
  let limit = recordedBefore
  /** Since when no jump was confirmed, since when none was at the jump before, and that jump. */
  let [start, from, earlier] = [-Infinity, -Infinity, 0]
  let isUnconfirmed = false
  for (const { state, by, at } of changes) {
    if (state === 'ahead') {
      if (!isUnconfirmed) [start, from, earlier] = [at, at, 0]
    } else if (state === 'accepted') {
      const isWithin = from < recordedBefore && recordedBefore < at
      if (isWithin && by > 0) limit = Math.min(limit, Math.max(from, recordedBefore - by - earlier))
      ;[start, from, earlier] = [at, start, by]
    }
    isUnconfirmed = state === 'ahead'
  }
  return limit
}

/** The change of the clock that an entry reports; undefined for any other event. */
export function clockChangeOf(event: unknown): LogClock | undefined {
  return isClockEvent(event) ? event.data : undefined
}

function isClockEvent(event: unknown): event is EventOf<'log.clock'> {
  return (
    isObject(event) &&
    event['type'] === 'log.clock' &&
    event['source'] === CLOCK_SOURCE &&
    isObject(event['data'])
  )
}

/** The entry that reports a change of the wall clock. */
export function clockEntry(change: LogClock): PreparedEntry {
  return newEntry(clockEvent(change))
}
