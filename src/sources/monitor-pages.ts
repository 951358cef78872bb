import type { Observable } from 'rxjs'
import { gateOf } from '../../operators/gate.ts'
import { isObject, monitorSource } from '../protocol/event.ts'
import type { MonitorEventsQuery, PaginatedMonitorEvents } from '../protocol/monitor.ts'
import { ProtocolError } from '../transport/errors.ts'
import type { RequestLine } from '../transport/errors.ts'
import type { Context } from './context.ts'
import { fedBy } from './fed-by.ts'
import { opened } from './opened.ts'
import { requestWritten } from './request-written.ts'

/**
 * The pages of a monitor's events (§4.1), newest first, until the last. The next page is requested while the current one
 * is consumed; behind a closed gate none is asked for beyond that.
 */
export function monitorPages(
  context: Context,
  monitorId: string,
  query: MonitorEventsQuery,
): Observable<PaginatedMonitorEvents> {
  return fedBy(async (subscriber, signal) => {
    const gate = gateOf(subscriber)
    const fetchPage = (cursor: string | undefined) =>
      monitorPage(context, monitorId, { ...query, cursor }, signal)

    // A service that hands out a cursor twice would lead round in a circle.
    const cursors = new Set<string>()
    let upcoming: Promise<PaginatedMonitorEvents> | undefined = fetchPage(query.cursor)
    while (upcoming !== undefined) {
      const page: PaginatedMonitorEvents = await upcoming
      // An execution's events come in one page: the service then ignores cursors (§4.1).
      const cursor = query.event_group_id === undefined ? nextCursor(page) : undefined
      upcoming = undefined
      if (cursor !== undefined) {
        if (cursors.has(cursor)) throw new ProtocolError('the pages go round in a circle', lineOf(monitorId))
        cursors.add(cursor)
        upcoming = fetchPage(cursor)
        // It is awaited only after the consumer has had this page; until then its failure has nobody to go to.
        upcoming.catch(() => {})
        // The service should have the request while a synchronous consumer is busy with this page.
        await requestWritten()
        if (signal.aborted) return
      }
      reportWarnings(context, monitorId, page)
      subscriber.next(page)
      if (gate?.closed === true) await opened(gate, signal)
      if (signal.aborted) return
    }
  })
}

/** Fetches one page of a monitor's events (§4.1). */
export async function monitorPage(
  context: Context,
  monitorId: string,
  query: MonitorEventsQuery,
  signal: AbortSignal,
): Promise<PaginatedMonitorEvents> {
  const request = { ...lineOf(monitorId), idempotent: true, query: { ...query } }
  const { body } = await context.transport.request(request, signal)
  if (isObject(body) && Array.isArray(body['events'])) return body as unknown as PaginatedMonitorEvents
  throw new ProtocolError('the page has no list of events', request)
}

/** Where the next older page is; undefined on the last page. */
export function nextCursor({ next_cursor }: PaginatedMonitorEvents): string | undefined {
  return typeof next_cursor === 'string' && next_cursor !== '' ? next_cursor : undefined
}

/** Passes on what the service remarked on a page. */
export function reportWarnings(
  context: Context,
  monitorId: string,
  { warnings }: PaginatedMonitorEvents,
): void {
  if (Array.isArray(warnings) && warnings.length > 0)
    context.report({ kind: 'warnings', source: monitorSource(monitorId), warnings })
}

/** The request for a page, as errors name it. */
export function lineOf(monitorId: string): RequestLine & { readonly method: 'GET' } {
  return { method: 'GET', path: `${monitorSource(monitorId)}/events` }
}
