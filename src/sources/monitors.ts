import {
  checkBoolean,
  checkCountryCode,
  checkFields,
  checkFrequency,
  checkGiven,
  checkId,
  checkInteger,
  checkMonitorMetadata,
  checkObject,
  checkOneOf,
  checkSourcePolicy,
  checkText,
  checkWebhook,
} from '../protocol/check.ts'
import { monitorSource } from '../protocol/event.ts'
import type { EventStreamSettings, Monitor, MonitorProcessor, SnapshotSettings } from '../protocol/monitor.ts'
import type { WebhookTarget } from '../protocol/task.ts'
import type { Context } from './context.ts'
import { requestBody, requestShape } from './request.ts'
import { awaitable, sourceOf } from './source.ts'
import type { AwaitableSource, Source, SourceOptions } from './source.ts'
import { map } from 'rxjs'

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
  readonly cursor?: string
  /** 1 to 10,000. */
  readonly limit?: number
  readonly type?: Monitor['type']
  readonly status?: Monitor['status']
}

/** One page of monitors; beyond the interface document. */
export interface MonitorsPage {
  readonly monitors: readonly Monitor[]
  readonly next_cursor?: string | null
}

/** Creates a monitor, which runs at once and then at its frequency; beyond the interface document. */
export function createMonitor(
  context: Context,
  request: CreateMonitorRequest,
  { signal }: SourceOptions = {},
): AwaitableSource<Monitor> {
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
  { signal }: SourceOptions = {},
): AwaitableSource<Monitor> {
  checkId('monitorId', monitorId)
  return awaitable(
    requestShape<Monitor>(context, { method: 'GET', path: monitorSource(monitorId), idempotent: true }),
    signal,
  )
}

/** Lists monitors, one page; beyond the interface document. */
export function listMonitors(context: Context, options: ListMonitorsOptions = {}): Source<MonitorsPage> {
  const { signal, cursor, limit, type, status } = options
  checkGiven(options, { cursor: checkText, limit: checkLimit, type: checkType, status: checkStatus })
  const call = {
    method: 'GET',
    path: '/v1/monitors',
    query: { cursor, limit, type, status },
    idempotent: true,
  } as const
  return sourceOf(requestShape<MonitorsPage>(context, call, ['monitors']), signal)
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
  { signal }: SourceOptions = {},
): AwaitableSource<Monitor> {
  checkId('monitorId', monitorId)
  const call = { method: 'POST', path: `${monitorSource(monitorId)}/cancel`, idempotent: true } as const
  return awaitable(requestShape<Monitor>(context, call), signal)
}

/** Has a monitor run once now, beside its schedule; emits when the service has taken it. Beyond the interface document. */
export function triggerMonitor(
  context: Context,
  monitorId: string,
  { signal }: SourceOptions = {},
): AwaitableSource<void> {
  checkId('monitorId', monitorId)
  const path = `${monitorSource(monitorId)}/trigger`
  const call = { method: 'POST', path, idempotent: false, mayBeEmpty: true } as const
  return awaitable(requestBody(context, call).pipe(map(() => undefined)), signal)
}
