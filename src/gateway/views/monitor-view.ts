import { monitorSource } from '../../protocol/event.ts'
import type { ResearchEventData } from '../../protocol/event.ts'
import { typesOf } from '../../protocol/event-types.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { isNotice } from './notice.ts'
import { idOfSource, pathPart } from './resource.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** The types of the events on a monitor's timeline. */
const TYPES = [...typesOf('monitor'), 'stream.gap', ...typesOf('source'), 'unknown'] as const

type MonitorRowType = (typeof TYPES)[number]

/** An event on a monitor's timeline, by `type`. Its path is `[monitor, id of the event]`. */
export type MonitorRow = {
  readonly [Each in MonitorRowType]: {
    readonly type: Each
    /** The data of the event; null if even the shortened one was too long. */
    readonly event: ResearchEventData[Each] | null
    /** Time of the event, in RFC 3339, as the service gave it; null if it gave none. */
    readonly time: string | null
    /** When it was first recorded, in Unix ms. */
    readonly recorded: number
    /** Set if a part was too long for the row: long texts end with `…`, and long lists have fewer elements. */
    readonly truncated?: true
  }
}[MonitorRowType]

/** The most that is kept of an event, in bytes. */
const MAX_EVENT = 229_376

/** The most that is kept of a time, in characters. */
const MAX_TIME = 64

/**
 * The timeline of a monitor: its reports, its gaps and errors, and when it could not be reached, by the param `monitor`.
 *
 * @param options `timeToLive`: default 30 days.
 */
export function monitorView(options: ViewAge = {}): View<MonitorRow, 'monitor'> {
  const timeToLive = ageOf(options, 30 * DAY)
  return view({
    version: 1,
    types: TYPES,
    params: ['monitor'],
    timeToLive,
    where: isNotice,
    key: ({ source, id }) => {
      const monitor = idOfSource(source, '/v1/monitors/')
      return monitor === undefined ? undefined : [pathPart(monitor), pathPart(id)]
    },
    source: ([monitor = '']) => monitorSource(monitor),
    reduce: (row: MonitorRow | undefined, { type, data, time, recorded }): MonitorRow => {
      const { value: event, isTruncated } = bounded<unknown, null>(data, MAX_EVENT, null)
      // The type and the data belong to one entry.
      return {
        type,
        event,
        time: time === null || time.length > MAX_TIME ? null : time,
        recorded: row?.recorded ?? recorded,
        ...(isTruncated && { truncated: true }),
      } as MonitorRow
    },
  })
}
