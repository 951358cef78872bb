import {
  MONITOR_PROCESSORS,
  type Monitor,
  type MonitorCompletionEvent,
  type MonitorErrorEvent,
  type MonitorEvent,
  type MonitorEventStreamEvent,
  type MonitorSnapshotEvent,
  type MonitorWebhook,
  type PaginatedMonitorEvents,
  type SnapshotSettings,
} from '../../../protocol/monitor.ts'
import { eventStreamSettings } from '../../../protocol/requests/monitors.ts'
import type { MonitorDetectedWebhook, WebhookPayload } from '../../../protocol/webhook.ts'
import * as s from './kinds.ts'
import { taskOutput } from './outputs.ts'
import { warning } from './problems.ts'

type EventStreamMonitor = Extract<Monitor, { readonly type: 'event_stream' }>
type SnapshotMonitor = Extract<Monitor, { readonly type: 'snapshot' }>

const required = {
  monitor_id: s.id,
  status: s.oneOf(['active', 'cancelled']),
  frequency: s.text,
  processor: s.oneOf(MONITOR_PROCESSORS),
  created_at: s.timestamp,
}
const optional = {
  last_run_at: s.orNull(s.timestamp),
  webhook: s.orNull(
    s.component(
      'MonitorWebhook',
      s.object<MonitorWebhook>({ url: s.url }, { event_types: s.orNull(s.list(s.text)) }),
    ),
  ),
  metadata: s.orNull(s.record(s.text)),
}

/** A monitor (§2.1). */
export const monitor = s.component(
  'Monitor',
  s.variants<Monitor, 'type'>({
    event_stream: s.component(
      'EventStreamMonitor',
      s.object<EventStreamMonitor>(
        {
          ...required,
          type: s.oneOf(['event_stream']),
          settings: s.requested('EventStreamSettings', eventStreamSettings),
        },
        { ...optional, output: s.nothing },
      ),
    ),
    snapshot: s.component(
      'SnapshotMonitor',
      s.object<SnapshotMonitor>(
        {
          ...required,
          type: s.oneOf(['snapshot']),
          settings: s.object<SnapshotSettings>(
            { task_run_id: s.id },
            { query: s.unknown, output_schema: s.unknown },
          ),
        },
        {
          ...optional,
          output: s.orNull(
            s.object<NonNullable<SnapshotMonitor['output']>>({}, { latest_snapshot: s.orNull(taskOutput) }),
          ),
        },
      ),
    ),
  }),
)

/** The response of `GET /v1/monitors`; beyond the interface document. */
export interface MonitorList {
  readonly monitors: readonly Monitor[]
  /** Absent on the last page. */
  readonly next_cursor?: string
}

/** The list of monitors; beyond the interface document. */
export const monitorList = s.component(
  'MonitorList',
  s.object<MonitorList>({ monitors: s.list(monitor) }, { next_cursor: s.id }),
)

const detected = {
  event_id: s.id,
  event_group_id: s.id,
  event_date: s.orNull(s.text),
}

/** The execution of a webhook's event (§6.2). */
const group = { event_group_id: s.id }
type Grouped<Event> = Event & DetectedEvent

const completion = s.component(
  'MonitorCompletionEvent',
  s.object<Omit<MonitorCompletionEvent, 'event_group_id'>>(
    { timestamp: s.timestamp },
    { event_type: s.oneOf(['completion']) },
  ),
)

const failure = s.component(
  'MonitorErrorEvent',
  s.object<Omit<MonitorErrorEvent, 'event_group_id'>>(
    { error_message: s.text, timestamp: s.timestamp },
    { event_type: s.oneOf(['error']) },
  ),
)

/** An event of a monitor (§2.2). */
const monitorEvent = s.component(
  'MonitorEvent',
  s.variants<MonitorEvent, 'event_type'>({
    event_stream: s.component(
      'MonitorEventStreamEvent',
      s.object<MonitorEventStreamEvent>(
        { ...detected, output: taskOutput },
        { event_type: s.oneOf(['event_stream']) },
      ),
    ),
    snapshot: s.component(
      'MonitorSnapshotEvent',
      s.object<MonitorSnapshotEvent>(
        { ...detected, changed_output: taskOutput, previous_output: taskOutput },
        { event_type: s.oneOf(['snapshot']) },
      ),
    ),
    completion,
    error: failure,
  }),
)

/** A page of a monitor's events (§4.1). */
export const monitorEvents = s.component(
  'PaginatedMonitorEvents',
  s.object<PaginatedMonitorEvents>(
    { events: s.list(monitorEvent) },
    { next_cursor: s.orNull(s.id), warnings: s.orNull(s.list(warning)) },
  ),
)

/** A webhook of a monitor, with the event that this service sends. */
interface SentWebhook<Type extends string, Event> {
  readonly type: Type
  readonly timestamp: string
  readonly data: {
    readonly monitor_id: string
    readonly event: Event
    readonly metadata?: Readonly<Record<string, string>> | null
  }
}

function webhook<Type extends WebhookPayload['type'], Event>(
  name: string,
  type: Type,
  event: s.AnswerSchema<Event>,
): s.AnswerSchema<SentWebhook<Type, Event>> {
  return s.component(
    name,
    s.object<SentWebhook<Type, Event>>(
      {
        type: s.oneOf([type]),
        timestamp: s.timestamp,
        data: s.object<SentWebhook<Type, Event>['data']>(
          { monitor_id: s.id, event },
          { metadata: s.orNull(s.record(s.text)) },
        ),
      },
      {},
    ),
  )
}

type DetectedEvent = MonitorDetectedWebhook['data']['event']

/** The webhooks of a monitor (§6.2); beyond the interface document. */
export const monitorWebhooks = {
  'monitor.event.detected': webhook(
    'MonitorDetectedWebhook',
    'monitor.event.detected',
    s.object<DetectedEvent>(group, {}),
  ),
  'monitor.execution.completed': webhook(
    'MonitorCompletedWebhook',
    'monitor.execution.completed',
    s.object<Grouped<MonitorCompletionEvent>>(
      { ...group, timestamp: s.timestamp },
      { event_type: s.oneOf(['completion']) },
    ),
  ),
  'monitor.execution.failed': webhook(
    'MonitorFailedWebhook',
    'monitor.execution.failed',
    s.object<Grouped<MonitorErrorEvent>>(
      { ...group, error_message: s.text, timestamp: s.timestamp },
      { event_type: s.oneOf(['error']) },
    ),
  ),
}
