import type { Cause, EventOf, LogClock } from './event.ts'
import { rfc3339 } from './timestamp.ts'

/** The source of the events of a log itself. */
const LOG_SOURCE = '/log'

/** The source of the changes of its clock, which a log reads apart from the ticks. */
export const CLOCK_SOURCE = `${LOG_SOURCE}/clock`

/** Time passed. `number` counts the ticks of a log. */
export function tickEvent(
  number: number,
  now: number,
  { through, complete }: { readonly through: number | null; readonly complete: boolean },
): EventOf<'log.tick'> {
  const at = rfc3339(now)
  return {
    id: `tick:${number}`,
    source: LOG_SOURCE,
    type: 'log.tick',
    time: at,
    data: { at, through: through === null ? null : rfc3339(through), complete },
    received: at,
    via: 'log',
  }
}

/** A process that others come after: it is complete up to a time, or was removed. */
export interface ProcessProgress {
  /** Its name. */
  readonly process: string
  /** Its part, if it runs with `share`. */
  readonly part: number | undefined
  /** The watermark, in Unix ms; null once it was removed. */
  readonly through: number | null
  readonly complete: boolean
}

/** The source of the events that a process appends, unless they have another one. */
export function processSource(process: string): string {
  return `/processes/${process}`
}

/**
 * A process is complete up to a time.
 *
 * @param key Unique for this progress of the process.
 * @param of When it is so, in RFC 3339, and the entry that makes it so.
 */
export function progressEvent(
  { process, part, through, complete }: ProcessProgress,
  key: string,
  {
    time,
    received,
    cause,
  }: { readonly time: string | null; readonly received: string; readonly cause?: Cause },
): EventOf<'log.progress'> {
  return {
    id: `progress:${key}`,
    source: processSource(process),
    type: 'log.progress',
    time,
    data: { through: through === null ? null : rfc3339(through), complete, part: part ?? null },
    received,
    via: cause === undefined ? 'log' : 'process',
    ...(cause !== undefined && { cause }),
  }
}

/** The wall clock has jumped, or is right again. */
export function clockEvent(change: LogClock): EventOf<'log.clock'> {
  const at = rfc3339(change.at)
  return {
    id: `clock:${change.state}:${change.at}`,
    source: CLOCK_SOURCE,
    type: 'log.clock',
    time: at,
    data: change,
    received: at,
    via: 'log',
  }
}

/**
 * A source was reached.
 *
 * @param key Unique for this change of the source.
 * @param lost When it was lost, in Unix ms; undefined for the first time.
 */
export function liveEvent(
  source: string,
  key: string,
  lost: number | undefined,
  now: number,
): EventOf<'source.live'> {
  const at = rfc3339(now)
  return {
    id: `live:${key}`,
    source,
    type: 'source.live',
    time: at,
    data: { lost: lost === undefined ? null : rfc3339(lost) },
    received: at,
    via: 'log',
  }
}

/** A source cannot be reached. `key` is unique for this change of the source. */
export function lostEvent(source: string, key: string, message: string, now: number): EventOf<'source.lost'> {
  const at = rfc3339(now)
  return {
    id: `lost:${key}`,
    source,
    type: 'source.lost',
    time: at,
    data: { message },
    received: at,
    via: 'log',
  }
}

/**
 * Ticks no longer wait for a source.
 *
 * @param key Unique for this change of the source.
 * @param times In Unix ms; infinite if the time is not known, or if processes wait forever.
 */
export function behindEvent(
  source: string,
  key: string,
  { through, until }: Readonly<Record<'through' | 'until', number>>,
  now: number,
): EventOf<'source.behind'> {
  const at = rfc3339(now)
  return {
    id: `behind:${key}`,
    source,
    type: 'source.behind',
    time: at,
    data: { through: timeOrNull(through), until: timeOrNull(until) },
    received: at,
    via: 'log',
  }
}

/**
 * Ticks wait for a source again, or it is no longer recorded.
 *
 * @param key Unique for this change of the source.
 * @param through The time up to which its events have come, in Unix ms; undefined if it is no longer recorded.
 */
export function caughtUpEvent(
  source: string,
  key: string,
  through: number | undefined,
  now: number,
): EventOf<'source.caught_up'> {
  const at = rfc3339(now)
  return {
    id: `caught_up:${key}`,
    source,
    type: 'source.caught_up',
    time: at,
    data: { through: through === undefined ? null : timeOrNull(through) },
    received: at,
    via: 'log',
  }
}

function timeOrNull(time: number): string | null {
  return Number.isFinite(time) ? rfc3339(time) : null
}
