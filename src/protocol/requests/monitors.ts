import { MAX_METADATA_KEY, MAX_METADATA_VALUE, MAX_PAGE_LIMIT, parseFrequency } from '../limits.ts'
import { MONITOR_PROCESSORS } from '../monitor.ts'
import type {
  CreateMonitorRequest,
  EventStreamSettings,
  ListMonitorsQuery,
  MonitorEventsQuery,
  SnapshotSettings,
  UpdateMonitorRequest,
} from '../monitor.ts'
import * as s from './kinds.ts'
import { memoryScope } from './memory.ts'
import type { OptionalFields } from './schema.ts'
import { sourcePolicy } from './search.ts'

const frequency = s.textThat(
  (given) => parseFrequency(given) !== undefined,
  'a frequency from 1h to 30d, such as 12h, 1d or 2w',
)

/** The event types of a monitor's webhook (§6.2); the last two are beyond the interface document. */
const WEBHOOK_TYPES = ['monitor.event.detected', 'monitor.execution.completed', 'monitor.execution.failed']

const common: Pick<
  OptionalFields<CreateMonitorRequest>,
  'processor' | 'webhook' | 'metadata' | 'memory_scope_key'
> = {
  processor: s.oneOf(MONITOR_PROCESSORS),
  webhook: s.object(
    {
      url: s.webUrl,
      event_types: s.withDefault(s.list(s.openOneOf(WEBHOOK_TYPES), 'choices', 1), [
        'monitor.event.detected',
      ]),
    },
    {},
  ),
  metadata: s.record(s.anyText(undefined, MAX_METADATA_VALUE), 'entries', MAX_METADATA_KEY),
  memory_scope_key: memoryScope,
}

const advancedSettings = s.options<NonNullable<EventStreamSettings['advanced_settings']>>({
  source_policy: sourcePolicy,
  location: s.country,
})

/** Settings of a monitor that tracks a search query (§2.1). */
export const eventStreamSettings = s.object<EventStreamSettings>(
  { query: s.query },
  {
    output_schema: s.object(
      { type: s.withDefault(s.oneOf(['json']), 'json'), json_schema: s.json('schema') },
      {},
    ),
    include_backfill: s.flag,
    advanced_settings: advancedSettings,
  },
)

const snapshotSettings = s.object<SnapshotSettings>(
  { task_run_id: s.id },
  { query: s.unknown, output_schema: s.unknown },
)

/** The body of `POST /v1/monitors`, with the fields of §2.1. The call is beyond the interface document. */
export const createMonitorRequest = s.variants<CreateMonitorRequest>({
  event_stream: s.object({ frequency, settings: eventStreamSettings }, common),
  snapshot: s.object({ frequency, settings: snapshotSettings }, common),
})

/** The body of `POST /v1/monitors/{monitor_id}/update`; beyond the interface document. Null removes a webhook or metadata. */
export const updateMonitorRequest = s.options<UpdateMonitorRequest>({
  frequency,
  webhook: s.orNull(common.webhook),
  metadata: s.orNull(common.metadata),
  type: s.oneOf(['event_stream']),
  settings: s.options({ advanced_settings: advancedSettings }),
})

/** The query of `GET /v1/monitors`; beyond the interface document. */
export const listMonitorsQuery = s.options<ListMonitorsQuery>({
  cursor: s.text(),
  limit: s.integer(1, 10_000),
  type: s.oneOrMore(s.oneOf(['event_stream', 'snapshot'])),
  status: s.oneOrMore(s.oneOf(['active', 'cancelled'])),
})

/** The query of `GET /v1/monitors/{monitor_id}/events` (§4.1). */
export const monitorEventsQuery = s.options<MonitorEventsQuery>({
  event_group_id: s.text('name'),
  cursor: s.text(),
  limit: s.integer(1, MAX_PAGE_LIMIT),
  include_completions: s.flag,
})
