import { checkObject } from '../protocol/check.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { isObject } from '../protocol/json.ts'
import { holdsAfter, isAwaited, NO_HOLDS, sourceKey } from './holds.ts'
import type { Holds } from './holds.ts'

/** How far the time of a process has come, in Unix ms; -Infinity before its first entry. */
export interface Clocks {
  /** The time up to which all events have come, before `lateness`. */
  readonly event: number
  /** The greatest time of recording. */
  readonly recorded: number
  /** Whether all events up to the event time have come. False if the last tick has waited for a stream as long as `maxHold`. */
  readonly complete: boolean
  /** The sources that are behind: event time is not that for them. */
  readonly holds: Holds
}

/** The clocks before the first entry. */
export const NO_TIME: Clocks = { event: -Infinity, recorded: -Infinity, complete: true, holds: NO_HOLDS }

/**
 * The event time of an entry, by which windows and timers with the clock `event` go: its `time`, else `received`, and never later than its
 * recording. Unix ms.
 *
 * ```ts
 * import { eventTime, memoryStore, openLog } from 'rivulet/log'
 *
 * const log = await openLog(memoryStore())
 * log.consume('ages', (entry) => console.log(entry.id, entry.recorded - eventTime(entry)))
 * ```
 */
export function eventTime(
  entry: Pick<ResearchEvent, 'time' | 'received'> & {
    /** When a log recorded it, in Unix ms. Default: when it was received. */
    readonly recorded?: number
  },
): number {
  checkObject('entry', entry)
  const { time, received, recorded } = entry
  const own = parsedTime(time) ?? parsedTime(received) ?? recorded ?? 0
  return Math.min(own, recorded ?? parsedTime(received) ?? own)
}

/**
 * The clocks after an entry of a log. Only a tick moves the event time, for all sources that are not behind: its recorder knows what is still
 * to come, and no entry does.
 *
 * @param at When it was recorded, in Unix ms.
 */
export function advanced(
  { event, recorded, complete, holds }: Clocks,
  entry: Pick<ResearchEvent, 'type' | 'source' | 'data'>,
  at: number,
): Clocks {
  const now = Math.max(recorded, at)
  if (entry.type !== 'log.tick' || !isObject(entry.data)) {
    return { event, recorded: now, complete, holds: holdsAfter(holds, entry, event) }
  }
  const { through, complete: isComplete } = entry.data
  // A tick of a writer whose clock is wrong is no later than its recording.
  const reached = Math.min(parsedTime(through) ?? -Infinity, now)
  return { event: Math.max(event, reached), recorded: now, complete: isComplete !== false, holds }
}

/** The clocks after an event that has come at a time without a log: nothing before it is still to come. */
export function arrivedBy({ event, recorded, holds }: Clocks, at: number): Clocks {
  return { event: Math.max(event, at), recorded: Math.max(recorded, at), complete: true, holds }
}

/**
 * The clocks of a process for what these sources have brought: event time is no later than that of each which is behind.
 *
 * @param lateness That of the process, in ms.
 */
export function clocksOf(clocks: Clocks, sources: readonly string[], lateness: number): Clocks {
  const { holds, recorded } = clocks
  let { event, complete } = clocks
  for (const source of sources) {
    const hold = holds.get(sourceKey(source))
    if (hold === undefined) continue
    if (isAwaited(hold, recorded)) event = Math.min(event, Math.floor(hold.through - lateness))
    // It was waited for in vain.
    else complete = false
  }
  return { ...clocks, event, complete }
}

/** When an event was recorded, else received. Unix ms. */
export function arrivedAt({
  received,
  recorded,
}: Pick<ResearchEvent, 'received'> & { readonly recorded?: number }): number {
  return recorded ?? parsedTime(received) ?? 0
}

/** The last text that was parsed: the times of an event are needed several times. */
let last: { readonly text: string; readonly at: number | undefined } = { text: '', at: undefined }

/** A time as Unix ms; undefined for what is none. */
export function parsedTime(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined
  if (text !== last.text) {
    const at = Date.parse(text)
    last = { text, at: Number.isNaN(at) ? undefined : at }
  }
  return last.at
}
