import { monitorSource } from '../../protocol/event.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { typesOf } from '../../protocol/event-types.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { idOfSource, pathPart, shownId } from './resource.ts'

/** A monitor. Its path is `[monitor]`, the param of `monitorView`. */
export interface MonitorsRow {
  /** The id of the monitor. */
  readonly monitor: string
  /** Number of changes that it has reported: events of an event stream, and snapshots. */
  readonly events: number
  /** Number of executions that found nothing new, as far as they were recorded. */
  readonly completions: number
  /** Number of executions that failed. */
  readonly errors: number
  /** Number of gaps: events that the service no longer has. */
  readonly gaps: number
  /** When its last change was recorded, in Unix ms; null for none. */
  readonly last: number | null
  /** `live`: it was reached. `lost`: it cannot be reached at the moment. `failed`: it was given up. `cancelled`: it sends no more reports. */
  readonly state: 'live' | 'lost' | 'failed' | 'cancelled'
  /** When that was recorded, in Unix ms. */
  readonly since: number
}

const TYPES = [...typesOf('monitor'), 'stream.gap', 'source.failed', 'source.live', 'source.lost'] as const

type MonitorEntry = EntryOf<(typeof TYPES)[number]>

/** Each monitor of a log: its reports, and whether it can be reached, by `[monitor]`. */
export function monitorsView(): View<MonitorsRow> {
  return view({
    version: 1,
    types: TYPES,
    key: ({ source }) => {
      const monitor = idOfSource(source, '/v1/monitors/')
      return monitor === undefined ? undefined : [pathPart(monitor)]
    },
    source: ([monitor = '']) => monitorSource(monitor),
    reduce: (row: MonitorsRow | undefined, entry, [part = '']): MonitorsRow => {
      const monitor = shownId(idOfSource(entry.source, '/v1/monitors/') ?? part)
      const none = { events: 0, completions: 0, errors: 0, gaps: 0, last: null }
      return after(row ?? { monitor, ...none, state: 'live', since: entry.recorded }, entry)
    },
  })
}

function after(row: MonitorsRow, entry: MonitorEntry): MonitorsRow {
  // A more complete duplicate is not another event.
  const one = entry.revision === 1 ? 1 : 0
  switch (entry.type) {
    case 'monitor.event_stream':
    case 'monitor.snapshot':
      return { ...row, events: row.events + one, last: entry.recorded }
    case 'monitor.completion':
      return { ...row, completions: row.completions + one }
    case 'monitor.error':
      return { ...row, errors: row.errors + one }
    case 'stream.gap':
      return { ...row, gaps: row.gaps + one }
    case 'monitor.cancelled':
      return inState(row, 'cancelled', entry.recorded)
    case 'source.live':
      return inState(row, 'live', entry.recorded)
    case 'source.lost':
      return inState(row, 'lost', entry.recorded)
    case 'source.failed':
      return inState(row, 'failed', entry.recorded)
  }
}

/** A cancelled monitor stays cancelled: the cancellation is recorded once, and a later recording may still reach the monitor. */
function inState(row: MonitorsRow, state: MonitorsRow['state'], since: number): MonitorsRow {
  return row.state === state || row.state === 'cancelled' ? row : { ...row, state, since }
}
