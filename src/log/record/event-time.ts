import type { LogStats } from '../store/stats.ts'
import { CLOCK_STREAM, tickOf } from './clock.ts'
import { listsIn } from './name-lists.ts'
import { behindIn, PROGRESS_STREAM, throughOf } from './progress-registry.ts'

/**
 * The event time of a log, and the recordings that it waits for.
 *
 * @param positions The positions of the log's streams, by their names.
 */
export function eventTimeOf(positions: ReadonlyMap<string, string | null>): Omit<LogStats['time'], 'now'> {
  const { through, complete } = tickOf(positions.get(CLOCK_STREAM))
  const recordings = Object.entries(listsIn(positions.get(PROGRESS_STREAM))).map(([name, parts]) => ({
    name,
    through: Math.min(...parts.map((part) => throughOf(positions.get(part)))),
    behind: new Set(parts.flatMap((part) => behindIn(positions.get(part)).map(({ source }) => source))).size,
  }))
  const least = Math.min(...recordings.map((recording) => recording.through))
  return {
    through: knownTime(through),
    complete,
    recordings: recordings.map((recording) => ({
      name: recording.name,
      through: knownTime(recording.through),
      isAwaited: recording.through === least,
      behind: recording.behind,
    })),
  }
}

/** A time in Unix ms; null if it is not known. */
export function knownTime(time: number): number | null {
  return Number.isFinite(time) ? time : null
}
