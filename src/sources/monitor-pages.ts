import type { Observable } from 'rxjs'
import { gateOf } from '../../operators/gate.ts'
import { isObject, monitorSource } from '../protocol/event.ts'
import type { MonitorEventsQuery, PaginatedMonitorEvents } from '../protocol/monitor.ts'
import { ProtocolError } from '../transport/errors.ts'
import type { Context } from './context.ts'
import { fedBy } from './fed-by.ts'
import { opened } from './opened.ts'
import { requestWritten } from './request-written.ts'

/**
 * The pages of a monitor's events (§4.1), newest first, until the last. The next page is requested while the current one
 * is consumed; behind a closed gate none is asked for beyond that.
 *
 * @param goesOn Looks at each page before it is emitted and before the next one is requested; false for the last that is
 * wanted. Default: all are.
 */
export function monitorPages(
  context: Context,
  monitorId: string,
  query: MonitorEventsQuery,
  goesOn: (page: PaginatedMonitorEvents) => boolean = () => true,
): Observable<PaginatedMonitorEvents> {
  const request = { method: 'GET', path: `${monitorSource(monitorId)}/events`, idempotent: true } as const

  return fedBy(async (subscriber, signal) => {
    const gate = gateOf(subscriber)
    const fetchPage = async (cursor: string | undefined): Promise<PaginatedMonitorEvents> => {
      const { body } = await context.transport.request({ ...request, query: { ...query, cursor } }, signal)
      if (isObject(body) && Array.isArray(body['events'])) return body as unknown as PaginatedMonitorEvents
      throw new ProtocolError('the page has no list of events', request)
    }

    // A service that hands out a cursor twice would lead round in a circle.
    const cursors = new Set<string>()
    let upcoming: Promise<PaginatedMonitorEvents> | undefined = fetchPage(query.cursor)
    while (upcoming !== undefined) {
      const page: PaginatedMonitorEvents = await upcoming
      // An execution's events come in one page: the service then ignores cursors (§4.1).
      const cursor = query.event_group_id === undefined ? page.next_cursor : undefined
      upcoming = undefined
      if (goesOn(page) && typeof cursor === 'string' && cursor !== '') {
        if (cursors.has(cursor)) throw new ProtocolError('the pages go round in a circle', request)
        cursors.add(cursor)
        upcoming = fetchPage(cursor)
        // It is awaited only after the consumer has had this page; until then its failure has nobody to go to.
        upcoming.catch(() => {})
        // The service should have the request while a synchronous consumer is busy with this page.
        await requestWritten()
        if (signal.aborted) return
      }
      if (Array.isArray(page.warnings) && page.warnings.length > 0) {
        context.report({ kind: 'warnings', source: monitorSource(monitorId), warnings: page.warnings })
      }
      subscriber.next(page)
      if (gate?.closed === true) await opened(gate, signal)
      if (signal.aborted) return
    }
  })
}
