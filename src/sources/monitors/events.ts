import { concatMap } from 'rxjs'
import { checkId, checkOptions } from '../../protocol/check.ts'
import { monitorEvent } from '../../protocol/event.ts'
import type { ListedMonitorEvent } from '../../protocol/event.ts'
import type { MonitorEventsQuery } from '../../protocol/monitor.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import { monitorEventsQuery } from '../../protocol/requests/monitors.ts'
import type { Context } from '../context.ts'
import { monitorPages } from './pages.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'

/** Options of `monitors.events`: the query of §4.1. */
export interface MonitorEventsOptions extends MonitorEventsQuery, SourceOptions {}

/** Emits the events of a monitor (§4.1), newest first, from all pages, and completes. */
export function monitorEvents(
  context: Context,
  monitorId: string,
  options: MonitorEventsOptions = {},
): Source<ListedMonitorEvent> {
  checkOptions('options', options, [...namesOf(monitorEventsQuery), 'signal'])
  const { signal, ...query } = options
  checkId('monitorId', monitorId)
  checkRequest(monitorEventsQuery, query)
  const events = monitorPages(context, monitorId, query).pipe(
    concatMap((page) =>
      page.events.map((wire) => monitorEvent(monitorId, wire, 'poll', context.scheduler.now())),
    ),
  )
  return sourceOf(events, signal)
}
