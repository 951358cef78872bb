import { checkObject } from '../protocol/check.ts'
import type { ResearchEvent } from '../protocol/event.ts'

/** How far the time of a process has come, in Unix ms; -Infinity before its first entry. */
export interface Clocks {
  /** The greatest event time of all entries so far. */
  readonly event: number
  /** The greatest time of recording. */
  readonly recorded: number
}

/** The clocks before the first entry. */
export const NO_TIME: Clocks = { event: -Infinity, recorded: -Infinity }

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
 * The clocks after an entry.
 *
 * @param recorded When it was recorded, in Unix ms.
 */
export function advanced(
  clocks: Clocks,
  { time, received }: Pick<ResearchEvent, 'time' | 'received'>,
  recorded: number,
): Clocks {
  return {
    event: Math.max(clocks.event, eventTime({ time, received, recorded })),
    recorded: Math.max(clocks.recorded, recorded),
  }
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
