import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkId, checkOptions } from '../../protocol/check.ts'
import { isObject, monitorSource } from '../../protocol/event.ts'
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
import { concatMap, map } from 'rxjs'

/** Options of `monitors.list`: the query of the list. */
export interface ListMonitorsOptions extends ListMonitorsQuery, SourceOptions {}

function onlySignal(options: SourceOptions): SourceOptions {
  checkOptions('options', options, ['signal'])
  return options
}

/**
 * Creates a monitor, which runs immediately and then at its frequency; beyond the interface document. Never creates two: a
 * request that the service may have acted on is not sent again, and errors with an `UncertainRequestError`.
 */
export function createMonitor(
  context: Context,
  request: CreateMonitorRequest,
  options: SourceOptions = {},
): AwaitableSource<Monitor> {
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
}

/**
 * Updates a monitor and emits it; beyond the interface document. Only the given fields change, and null removes a webhook or
 * metadata. The settings of a snapshot monitor cannot be changed.
 */
export function updateMonitor(
  context: Context,
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

/** Reads a monitor; beyond the interface document. */
export function getMonitor(
  context: Context,
  monitorId: string,
  options: SourceOptions = {},
): AwaitableSource<Monitor> {
  const { signal } = onlySignal(options)
  checkId('monitorId', monitorId)
  return awaitable(
    requestShape<Monitor>(context, { method: 'GET', path: monitorSource(monitorId), idempotent: true }),
    signal,
  )
}

/**
 * Emits each monitor of the list, from all pages, and completes; beyond the interface document. The next page is requested while
 * the current one is consumed.
 */
export function listMonitors(context: Context, options: ListMonitorsOptions = {}): Source<Monitor> {
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

function isMonitors(value: unknown): value is readonly Monitor[] {
  return Array.isArray(value) && value.every((entry) => isObject(entry))
}

/** Cancels a monitor permanently and emits it (§4.2). Idempotent. */
export function cancelMonitor(
  context: Context,
  monitorId: string,
  options: SourceOptions = {},
): AwaitableSource<Monitor> {
  const { signal } = onlySignal(options)
  checkId('monitorId', monitorId)
  const call = { method: 'POST', path: `${monitorSource(monitorId)}/cancel`, idempotent: true } as const
  return awaitable(requestShape<Monitor>(context, call), signal)
}

/**
 * Runs a monitor once now, outside its schedule. Emits when the service has accepted it. Not sent again if the service may
 * have acted on it: then it errors with an `UncertainRequestError`. Beyond the interface document.
 */
export function triggerMonitor(
  context: Context,
  monitorId: string,
  options: SourceOptions = {},
): AwaitableSource<void> {
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
}
