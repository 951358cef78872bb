import {
  checkBoolean,
  checkCountryCode,
  checkFields,
  checkFrequency,
  checkGiven,
  checkId,
  checkInteger,
  checkList,
  checkMonitorMetadata,
  checkObject,
  checkOneOf,
  checkOptions,
  checkSourcePolicy,
  checkText,
  checkWebhook,
} from '../../protocol/check.ts'
import { isObject, monitorSource } from '../../protocol/event.ts'
import type {
  EventStreamSettings,
  Monitor,
  MonitorProcessor,
  SnapshotSettings,
} from '../../protocol/monitor.ts'
import type { WebhookTarget } from '../../protocol/task.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { cursorOf, pagesOf } from '../shapes/pages.ts'
import { requestBody, requestShape } from '../shapes/request.ts'
import { awaitable, sourceOf } from '../shapes/source.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { concatMap, map } from 'rxjs'

/** The body that creates a monitor; beyond the interface document, its fields are those of §2.1. */
export type CreateMonitorRequest = {
  /** A number and `h`, `d` or `w`; 1h to 30d. */
  readonly frequency: string
  /** Default `lite`. */
  readonly processor?: MonitorProcessor
  readonly webhook?: WebhookTarget
  /** Keys of at most 16 characters, values of at most 512. */
  readonly metadata?: Readonly<Record<string, string>>
} & (
  | { readonly type: 'event_stream'; readonly settings: EventStreamSettings }
  | { readonly type: 'snapshot'; readonly settings: SnapshotSettings }
)

/** The query that lists monitors; beyond the interface document. */
export interface ListMonitorsOptions extends SourceOptions {
  /** A `next_cursor`, to begin at. Default: the beginning of the list. */
  readonly cursor?: string
  /** Monitors a page, 1 to 10,000. It bounds a request, not the list: all pages are walked. Default: the service's. */
  readonly limit?: number
  /** One type or several. Default: all. */
  readonly type?: Monitor['type'] | readonly Monitor['type'][]
  /** One status or several. Default: all. */
  readonly status?: Monitor['status'] | readonly Monitor['status'][]
}

function onlySignal(options: SourceOptions): SourceOptions {
  checkOptions('options', options, ['signal'])
  return options
}

/** Creates a monitor, which runs at once and then at its frequency; beyond the interface document. */
export function createMonitor(
  context: Context,
  request: CreateMonitorRequest,
  options: SourceOptions = {},
): AwaitableSource<Monitor> {
  const { signal } = onlySignal(options)
  checkObject('request', request)
  checkType('type', request.type)
  checkFrequency('frequency', request.frequency)
  checkGiven(request, { processor: checkProcessor, metadata: checkMonitorMetadata, webhook: checkWebhook })
  checkObject('settings', request.settings)
  if (request.type === 'event_stream') checkEventStreamSettings(request.settings)
  else checkId('settings.task_run_id', request.settings.task_run_id)
  const call = { method: 'POST', path: '/v1/monitors', body: request, idempotent: false } as const
  return awaitable(requestShape<Monitor>(context, call), signal)
}

function checkType(argument: string, value: unknown): void {
  checkOneOf(argument, value, ['event_stream', 'snapshot'])
}

function checkProcessor(argument: string, value: unknown): void {
  checkOneOf(argument, value, ['lite', 'base', 'core'])
}

function checkEventStreamSettings(settings: EventStreamSettings): void {
  checkText('settings.query', settings.query)
  checkFields('settings', settings, {
    output_schema: checkObject,
    include_backfill: checkBoolean,
    advanced_settings: checkAdvancedSettings,
  })
}

function checkAdvancedSettings(argument: string, value: unknown): void {
  checkFields(argument, value, { source_policy: checkSourcePolicy, location: checkCountryCode })
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
 * Lists monitors: walks all pages and emits monitor by monitor, then completes; beyond the interface document. The next page is
 * requested while the current one is consumed.
 */
export function listMonitors(context: Context, options: ListMonitorsOptions = {}): Source<Monitor> {
  checkOptions('options', options, ['cursor', 'limit', 'type', 'status', 'signal'])
  const { signal, cursor: first, limit, type, status } = options
  checkGiven(options, {
    cursor: checkText,
    limit: checkLimit,
    type: oneOrSeveral(checkType),
    status: oneOrSeveral(checkStatus),
  })
  const line = { method: 'GET', path: '/v1/monitors' } as const
  const fetch = async (cursor: string | undefined, aborted: AbortSignal) => {
    const request = { ...line, idempotent: true, query: { cursor, limit, type, status } }
    const { body } = await context.transport.request(request, aborted)
    if (!isObject(body) || !isMonitors(body['monitors']))
      throw new ProtocolError('the page has no list of monitors', line)
    return { monitors: body['monitors'], next: cursorOf(body['next_cursor']) }
  }
  const pages = pagesOf({ cursor: first, fetch, next: ({ next }) => next, line })
  return sourceOf(pages.pipe(concatMap(({ monitors }) => monitors)), signal)
}

function isMonitors(value: unknown): value is readonly Monitor[] {
  return Array.isArray(value) && value.every((entry) => isObject(entry))
}

function oneOrSeveral(check: (argument: string, value: unknown) => void) {
  return (argument: string, value: unknown): void => {
    if (!Array.isArray(value)) return check(argument, value)
    checkList(argument, value)
    for (const [index, entry] of value.entries()) check(`${argument}[${index}]`, entry)
  }
}

function checkLimit(argument: string, value: unknown): void {
  checkInteger(argument, value, 1, 10_000)
}

function checkStatus(argument: string, value: unknown): void {
  checkOneOf(argument, value, ['active', 'cancelled'])
}

/** Cancels a monitor for good and emits it (§4.2). Cancelling a cancelled one changes nothing. */
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

/** Has a monitor run once now, beside its schedule; emits when the service has taken it. Beyond the interface document. */
export function triggerMonitor(
  context: Context,
  monitorId: string,
  options: SourceOptions = {},
): AwaitableSource<void> {
  const { signal } = onlySignal(options)
  checkId('monitorId', monitorId)
  const path = `${monitorSource(monitorId)}/trigger`
  const call = { method: 'POST', path, idempotent: false, mayBeEmpty: true } as const
  return awaitable(requestBody(context, call).pipe(map(() => undefined)), signal)
}
