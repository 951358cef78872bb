import { concatMap, map } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkId, checkOptions } from '../../protocol/check.ts'
import { monitorSource } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import type { FollowedMonitorEvent, ListedMonitorEvent } from '../../protocol/event.ts'
import type {
  CreateMonitorRequest,
  ListMonitorsQuery,
  Monitor,
  UpdateMonitorRequest,
} from '../../protocol/monitor.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import {
  createMonitorRequest,
  listMonitorsQuery,
  updateMonitorRequest,
} from '../../protocol/requests/monitors.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { actedOnOnce } from '../shapes/acted-on-once.ts'
import { cursorOf, pagesOf } from '../shapes/pages.ts'
import { requestBody, requestShape } from '../shapes/request.ts'
import { awaitable, sourceOf } from '../shapes/source.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { monitorEvents } from './events.ts'
import type { MonitorEventsOptions } from './events.ts'
import { followMonitor } from './follow.ts'
import type { FollowMonitorOptions } from './follow.ts'
import { createSnapshots } from './snapshots.ts'

/** Options of `monitors.list`: the query of the list. */
export interface ListMonitorsOptions extends ListMonitorsQuery, SourceOptions {}

/** The calls of `client.monitors`. */
export interface MonitorCalls extends ReturnType<typeof monitorCalls> {}

/** Creates `client.monitors`. */
export function monitorCalls(context: Context) {
  return {
    /** Emits the past events of a monitor (§4.1), page by page, newest first, then completes. */
    events(monitorId: string, options?: MonitorEventsOptions): Source<ListedMonitorEvent> {
      return monitorEvents(context, monitorId, options)
    },
    /** Emits all events of a monitor, oldest first, each once. Completes only when the monitor is cancelled. */
    follow(monitorId: string, options?: FollowMonitorOptions): Source<FollowedMonitorEvent> {
      return followMonitor(context, monitorId, options)
    },
    snapshots: createSnapshots(context),
    /**
     * Creates a monitor, which runs immediately and then at its frequency. Beyond the interface document. Never creates two: a
     * request that the service may have acted on is not sent again, and errors with an `UncertainRequestError`.
     */
    create(request: CreateMonitorRequest, options: SourceOptions = {}): AwaitableSource<Monitor> {
      const { signal } = onlySignal(options)
      checkRequest(createMonitorRequest, request)
      const call = {
        method: 'POST',
        path: '/v1/monitors',
        body: request,
        quota: 'monitors',
        idempotent: false,
      } as const
      return awaitable(requestShape<Monitor>(context, call).pipe(actedOnOnce()), signal)
    },
    /**
     * Updates a monitor and emits it. Beyond the interface document. Only the given fields change, and null removes a webhook or
     * metadata. The settings of a snapshot monitor cannot be changed.
     */
    update(
      monitorId: string,
      changes: UpdateMonitorRequest,
      options: SourceOptions = {},
    ): AwaitableSource<Monitor> {
      const { signal } = onlySignal(options)
      checkId('monitorId', monitorId)
      checkChanges(changes)
      const path = `${monitorSource(monitorId)}/update`
      return awaitable(
        requestShape<Monitor>(context, { method: 'POST', path, body: changes, idempotent: true }),
        signal,
      )
    },
    /** Reads a monitor. Beyond the interface document. */
    get(monitorId: string, options: SourceOptions = {}): AwaitableSource<Monitor> {
      const { signal } = onlySignal(options)
      checkId('monitorId', monitorId)
      return awaitable(
        requestShape<Monitor>(context, { method: 'GET', path: monitorSource(monitorId), idempotent: true }),
        signal,
      )
    },
    /**
     * Emits each monitor of the list, from all pages, and completes. Beyond the interface document. The next page is requested while
     * the current one is consumed.
     */
    list(options: ListMonitorsOptions = {}): Source<Monitor> {
      return listMonitors(context, options)
    },
    /** Cancels a monitor permanently and emits it (§4.2). Idempotent. */
    cancel(monitorId: string, options: SourceOptions = {}): AwaitableSource<Monitor> {
      const { signal } = onlySignal(options)
      checkId('monitorId', monitorId)
      const call = { method: 'POST', path: `${monitorSource(monitorId)}/cancel`, idempotent: true } as const
      return awaitable(requestShape<Monitor>(context, call), signal)
    },
    /**
     * Runs a monitor once now, outside its schedule. Emits when the service has accepted it. Not sent again if the service may
     * have acted on it: then it errors with an `UncertainRequestError`. Beyond the interface document.
     */
    trigger(monitorId: string, options: SourceOptions = {}): AwaitableSource<void> {
      const { signal } = onlySignal(options)
      checkId('monitorId', monitorId)
      const path = `${monitorSource(monitorId)}/trigger`
      const call = { method: 'POST', path, idempotent: false, mayBeEmpty: true } as const
      return awaitable(
        requestBody(context, call).pipe(
          actedOnOnce(),
          map(() => undefined),
        ),
        signal,
      )
    },
  }
}

function listMonitors(context: Context, options: ListMonitorsOptions): Source<Monitor> {
  checkOptions('options', options, [...namesOf(listMonitorsQuery), 'signal'])
  const { signal, cursor: first, limit, type, status } = options
  checkRequest(listMonitorsQuery, options)
  const line = { method: 'GET', path: '/v1/monitors' } as const
  const fetch = async (cursor: string | undefined, aborted: AbortSignal) => {
    const request = { ...line, idempotent: true, query: { cursor, limit, type, status } }
    const { body } = await context.transport.request(request, aborted)
    if (!isObject(body) || !isMonitors(body['monitors']))
      throw new ProtocolError('the page has no list of monitors', line)
    return { monitors: body['monitors'], next: cursorOf(body['next_cursor']) }
  }
  const pages = pagesOf(context, {
    cursor: first,
    fetch,
    next: ({ next }) => next,
    entries: ({ monitors }) => monitors,
    line,
  })
  return sourceOf(pages.pipe(concatMap(({ monitors }) => monitors)), signal)
}

function onlySignal(options: SourceOptions): SourceOptions {
  checkOptions('options', options, ['signal'])
  return options
}

function checkChanges(changes: UpdateMonitorRequest): void {
  // Checked as unknown, for callers without TypeScript.
  const given: unknown = changes
  const { type, settings }: { readonly type?: unknown; readonly settings?: unknown } = Object(given)
  if (type === 'snapshot') {
    const message = 'a snapshot monitor has no settings to update: leave type and settings out'
    throw new ArgumentError('type', { message }, type)
  }
  checkRequest(updateMonitorRequest, given)
  checkOptions('changes', given, namesOf(updateMonitorRequest))
  if (settings !== undefined && type === undefined)
    throw new ArgumentError('type', 'event_stream, the type of monitors with settings to update', type)
  if (Object.values(Object(given)).every((value) => value === undefined)) {
    throw new ArgumentError('changes', 'an object with at least one change', given)
  }
}

function isMonitors(value: unknown): value is readonly Monitor[] {
  return Array.isArray(value) && value.every((entry) => isObject(entry))
}
