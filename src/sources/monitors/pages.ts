import { tap } from 'rxjs'
import type { Observable } from 'rxjs'
import { monitorSource } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import type { MonitorEventsQuery, PaginatedMonitorEvents } from '../../protocol/monitor.ts'
import type { Warning } from '../../protocol/problem.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import { redactJson } from '../../transport/redact.ts'
import type { Context } from '../context.ts'
import { cursorOf, pagesOf } from '../shapes/pages.ts'
import type { List } from '../shapes/pages.ts'

/** Emits the pages of a monitor's events (§4.1), newest first, and completes after the last. */
export function monitorPages(
  context: Context,
  monitorId: string,
  query: MonitorEventsQuery,
): Observable<PaginatedMonitorEvents> {
  const pages = pagesOf(context, {
    cursor: query.cursor,
    fetch: (cursor, signal) => monitorPage(context, monitorId, { ...query, cursor }, signal),
    // The events of one execution are one page: the service then ignores cursors (§4.1).
    next: (page) => (query.event_group_id === undefined ? nextCursor(page) : undefined),
    entries: ({ events }) => events,
    ...eventList(monitorId),
  })
  return pages.pipe(tap((page) => reportWarnings(context, monitorId, page)))
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

/** The cursor of the next older page; undefined on the last page. */
export function nextCursor({ next_cursor }: PaginatedMonitorEvents): string | undefined {
  return cursorOf(next_cursor)
}

/** Reports the warnings of a page to the diagnostics, redacted, since they are logged. */
export function reportWarnings(
  context: Context,
  monitorId: string,
  { warnings }: PaginatedMonitorEvents,
): void {
  if (!Array.isArray(warnings)) return
  const valid = warnings.map((warning) => redacted(warning, context)).filter(isWarning)
  if (valid.length > 0)
    context.report({ kind: 'warnings', source: monitorSource(monitorId), warnings: valid })
}

function redacted(warning: unknown, { transport }: Context): unknown {
  try {
    return redactJson(warning, transport.redact)
  } catch {
    // Nested too deeply for the stack.
    return undefined
  }
}

function isWarning(value: unknown): value is Warning {
  return isObject(value) && typeof value['type'] === 'string' && typeof value['message'] === 'string'
}

/** The most pages of events: ten for each of the some 300 executions that the service lists, which is enough for a `limit` of 1. */
const MAX_PAGES = 3_000

/** The list of a monitor's events. */
export function eventList(monitorId: string): List {
  return { line: lineOf(monitorId), maxPages: MAX_PAGES }
}

/** The request for a page, for errors. */
export function lineOf(monitorId: string): RequestLine & { readonly method: 'GET' } {
  return { method: 'GET', path: `${monitorSource(monitorId)}/events` }
}
