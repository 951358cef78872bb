import {
  checkBoolean,
  checkFrequency,
  checkId,
  checkInteger,
  checkMonitorMetadata,
  checkObject,
  checkOneOf,
  checkSourcePolicy,
  checkText,
  checkTexts,
  checkCountryCode,
  checkUrl,
} from '../protocol/check.ts'
import { monitorSource } from '../protocol/event.ts'
import type { EventStreamSettings, Monitor, MonitorProcessor, SnapshotSettings } from '../protocol/monitor.ts'
import type { WebhookTarget } from '../protocol/task.ts'
import type { Context } from './context.ts'
import { requestBody, requestShape } from './request.ts'
import { sourceOf } from './source.ts'
import type { Source, SourceOptions } from './source.ts'
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
): Source<Monitor> {
  checkObject('request', request)
  checkOneOf('type', request.type, ['event_stream', 'snapshot'])
  checkFrequency('frequency', request.frequency)
  if (request.processor !== undefined) checkOneOf('processor', request.processor, ['lite', 'base', 'core'])
  if (request.metadata !== undefined) checkMonitorMetadata('metadata', request.metadata)
  if (request.webhook !== undefined) {
    checkUrl('webhook.url', request.webhook.url)
    checkTexts('webhook.event_types', request.webhook.event_types)
  }
  checkObject('settings', request.settings)
  if (request.type === 'event_stream') checkEventStreamSettings(request.settings)
  else checkId('settings.task_run_id', request.settings.task_run_id)
  const call = { method: 'POST', path: '/v1/monitors', body: request, idempotent: false } as const
  return sourceOf(requestShape<Monitor>(context, call), signal)
}

function checkEventStreamSettings(settings: EventStreamSettings): void {
  const { query, output_schema, include_backfill, advanced_settings } = settings
  checkText('settings.query', query)
  if (output_schema !== undefined) checkObject('settings.output_schema', output_schema)
  if (include_backfill !== undefined) checkBoolean('settings.include_backfill', include_backfill)
  if (advanced_settings === undefined) return
  checkObject('settings.advanced_settings', advanced_settings)
  const { source_policy, location } = advanced_settings
  if (source_policy !== undefined)
    checkSourcePolicy('settings.advanced_settings.source_policy', source_policy)
  if (location !== undefined) checkCountryCode('settings.advanced_settings.location', location)
}

/** Reads a monitor; beyond the interface document. */
export function getMonitor(
  context: Context,
  monitorId: string,
  { signal }: SourceOptions = {},
): Source<Monitor> {
  checkId('monitorId', monitorId)
  return sourceOf(
    requestShape<Monitor>(context, { method: 'GET', path: monitorSource(monitorId), idempotent: true }),
    signal,
  )
}

/** Lists monitors, one page; beyond the interface document. */
export function listMonitors(context: Context, options: ListMonitorsOptions = {}): Source<MonitorsPage> {
  const { signal, cursor, limit, type, status } = options
  if (cursor !== undefined) checkText('cursor', cursor)
  if (limit !== undefined) checkInteger('limit', limit, 1, 10_000)
  if (type !== undefined) checkOneOf('type', type, ['event_stream', 'snapshot'])
  if (status !== undefined) checkOneOf('status', status, ['active', 'cancelled'])
  const call = {
    method: 'GET',
    path: '/v1/monitors',
    query: { cursor, limit, type, status },
    idempotent: true,
  } as const
  return sourceOf(requestShape<MonitorsPage>(context, call, ['monitors']), signal)
}

/** Cancels a monitor for good and emits it (§4.2). Cancelling a cancelled one changes nothing. */
export function cancelMonitor(
  context: Context,
  monitorId: string,
  { signal }: SourceOptions = {},
): Source<Monitor> {
  checkId('monitorId', monitorId)
  const call = { method: 'POST', path: `${monitorSource(monitorId)}/cancel`, idempotent: true } as const
  return sourceOf(requestShape<Monitor>(context, call), signal)
}

/** Has a monitor run once now, beside its schedule; emits when the service has taken it. Beyond the interface document. */
export function triggerMonitor(
  context: Context,
  monitorId: string,
  { signal }: SourceOptions = {},
): Source<void> {
  checkId('monitorId', monitorId)
  const call = { method: 'POST', path: `${monitorSource(monitorId)}/trigger`, idempotent: false } as const
  return sourceOf(requestBody(context, call).pipe(map(() => undefined)), signal)
}
