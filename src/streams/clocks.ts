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
 * The clocks after an entry. Its event time is `time`, else `received`, and never later than its recording.
 *
 * @param at When it was recorded, in Unix ms.
 */
export function advanced(
  { event, recorded }: Clocks,
  { time, received }: Pick<ResearchEvent, 'time' | 'received'>,
  at: number,
): Clocks {
  const now = Math.max(recorded, at)
  const own = parsedTime(time) ?? parsedTime(received) ?? at
  return { event: Math.max(event, Math.min(own, now)), recorded: now }
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
