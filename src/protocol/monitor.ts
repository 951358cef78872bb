import type { TaskOutput } from './output.ts'
import type { Warning } from './problem.ts'
import type { JsonSchemaSpec, SourcePolicy, WebhookTarget } from './task.ts'

/** Settings of a monitor that tracks a search query (§2.1). */
export interface EventStreamSettings {
  readonly query: string
  readonly output_schema?: JsonSchemaSpec
  /** Whether the first execution also reports a sample of earlier events. */
  readonly include_backfill?: boolean
  readonly advanced_settings?: { readonly source_policy?: SourcePolicy; readonly location?: string }
}

/** Settings of a monitor that tracks a run's output; beyond the interface document. */
export interface SnapshotSettings {
  readonly task_run_id: string
  readonly query?: unknown
  readonly output_schema?: unknown
}

/** Every processor of monitors, from the cheapest to the most thorough (§2.1). */
export const MONITOR_PROCESSORS = ['lite', 'base', 'core'] as const

/** The effort of a monitor (§2.1). */
export type MonitorProcessor = (typeof MONITOR_PROCESSORS)[number]

/** The target of a monitor's webhooks (§2.1). */
export interface MonitorWebhook {
  readonly url: string
  /** Absent for the service's default. */
  readonly event_types?: readonly string[] | null
}

interface MonitorBase {
  readonly monitor_id: string
  readonly status: 'active' | 'cancelled'
  /** A number and `h`, `d` or `w`; 1h to 30d (§8). */
  readonly frequency: string
  readonly processor: MonitorProcessor
  readonly created_at: string
  readonly last_run_at?: string | null
  readonly webhook?: MonitorWebhook | null
  readonly metadata?: Readonly<Record<string, string>> | null
}

/** A query that the service repeats on a schedule (§2.1). */
export type Monitor =
  | (MonitorBase & {
      readonly type: 'event_stream'
      readonly settings: EventStreamSettings
      readonly output?: null
    })
  | (MonitorBase & {
      readonly type: 'snapshot'
      readonly settings: SnapshotSettings
      readonly output?: { readonly latest_snapshot?: TaskOutput | null } | null
    })

/** The body that creates a monitor; beyond the interface document, with the fields of §2.1. */
export type CreateMonitorRequest = {
  /** A number and `h`, `d` or `w`; 1h to 30d. */
  readonly frequency: string
  /** Default `lite`. */
  readonly processor?: MonitorProcessor
  readonly webhook?: WebhookTarget
  /** Keys of at most 16 characters, values of at most 512. */
  readonly metadata?: Readonly<Record<string, string>>
  /** The memory scope in which its detections are kept, of at most 512 characters. Absent or null: the personal memory. */
  readonly memory_scope_key?: string | null
} & (
  | { readonly type: 'event_stream'; readonly settings: EventStreamSettings }
  | { readonly type: 'snapshot'; readonly settings: SnapshotSettings }
)

/** The body that updates a monitor; beyond the interface document. Only the fields that are given change. */
export interface UpdateMonitorRequest {
  /** A number and `h`, `d` or `w`; 1h to 30d. */
  readonly frequency?: string
  /** Null removes it. */
  readonly webhook?: WebhookTarget | null
  /** Null removes it. Keys of at most 16 characters, values of at most 512. */
  readonly metadata?: Readonly<Record<string, string>> | null
  /** Required with `settings`. Monitors of type `snapshot` have no settings to update. */
  readonly type?: 'event_stream'
  readonly settings?: Pick<EventStreamSettings, 'advanced_settings'>
}

/** The query that lists monitors; beyond the interface document. */
export interface ListMonitorsQuery {
  /** A `next_cursor`, to begin at. Default: the beginning of the list. */
  readonly cursor?: string
  /** Monitors per page, 1 to 10,000. Limits each request; all pages are requested. Default: the service's. */
  readonly limit?: number
  /** One type or several. Default: all. */
  readonly type?: Monitor['type'] | readonly Monitor['type'][]
  /** One status or several. Default: all. */
  readonly status?: Monitor['status'] | readonly Monitor['status'][]
}

interface DetectedChange {
  /** Stable across pages and retries. */
  readonly event_id: string
  /** The execution that found it. */
  readonly event_group_id: string
  /** YYYY-MM-DD, YYYY-MM or YYYY. */
  readonly event_date: string | null
}

/** A material change that a search monitor found (§2.2). */
export interface MonitorEventStreamEvent extends DetectedChange {
  /** Absent for the default, as in the other variants. The envelope's `type` is always present. */
  readonly event_type?: 'event_stream'
  readonly output: TaskOutput
}

/** A change in the output that a snapshot monitor tracks (§2.2). */
export interface MonitorSnapshotEvent extends DetectedChange {
  readonly event_type?: 'snapshot'
  /** Only the fields that changed. */
  readonly changed_output: TaskOutput
  /** The whole output of the run before. */
  readonly previous_output: TaskOutput
}

/** An execution found nothing new (§2.2). Listed only with `include_completions`. */
export interface MonitorCompletionEvent {
  readonly event_type?: 'completion'
  readonly timestamp: string
  /** The execution. Webhooks have it (§6.2), lists do not. */
  readonly event_group_id?: string
}

/** An execution failed (§2.2). Always listed. */
export interface MonitorErrorEvent {
  readonly event_type?: 'error'
  readonly error_message: string
  readonly timestamp: string
  /** The execution. Webhooks have it (§6.2), lists do not. */
  readonly event_group_id?: string
}

/** An event that a monitor reports, discriminated by `event_type` (§2.2). */
export type MonitorEvent =
  | MonitorEventStreamEvent
  | MonitorSnapshotEvent
  | MonitorCompletionEvent
  | MonitorErrorEvent

/** The query of `GET /v1/monitors/{monitor_id}/events` (§4.1). */
export interface MonitorEventsQuery {
  /** Only this execution's events; the paging parameters are then ignored. */
  readonly event_group_id?: string
  /** A `next_cursor`. */
  readonly cursor?: string
  /** Events per page, 1 to 100. Default 20. */
  readonly limit?: number
  /** Whether executions that found nothing new are listed too, as completions. Default false. */
  readonly include_completions?: boolean
}

/** One page of a monitor's events, newest first (§4.1). */
export interface PaginatedMonitorEvents {
  readonly events: readonly MonitorEvent[]
  /** Absent or null on the last page. */
  readonly next_cursor?: string | null
  readonly warnings?: readonly Warning[] | null
}
