import type { MonitorErrorEvent } from './monitor.ts'
import type { TaskRun } from './task.ts'

/** A task run ended (§6.1). */
export interface TaskRunWebhook {
  readonly type: 'task_run.status'
  /** When it happened, ISO 8601. */
  readonly timestamp: string
  readonly data: TaskRun
}

interface MonitorWebhookBase<Type extends string, Event> {
  readonly type: Type
  readonly timestamp: string
  readonly data: {
    readonly monitor_id: string
    readonly event: Event
    readonly metadata?: Readonly<Record<string, string>> | null
  }
}

/** A monitor found something; the events are fetched by their group (§6.2, beyond the interface document). */
export type MonitorDetectedWebhook = MonitorWebhookBase<
  'monitor.event.detected',
  { readonly event_group_id: string }
>

/** An execution found nothing new (beyond the interface document). */
export type MonitorCompletedWebhook = MonitorWebhookBase<
  'monitor.execution.completed',
  { readonly timestamp?: string } | null | undefined
>

/** An execution failed (beyond the interface document). */
export type MonitorFailedWebhook = MonitorWebhookBase<'monitor.execution.failed', Partial<MonitorErrorEvent>>

/** The bodies that the service posts, discriminated by `type` (§6). */
export type WebhookPayload =
  | TaskRunWebhook
  | MonitorDetectedWebhook
  | MonitorCompletedWebhook
  | MonitorFailedWebhook

/** A verified webhook request: its id, and its body as parsed, otherwise unchecked JSON. */
export interface WebhookDelivery {
  /** The `webhook-id` header: the same for every attempt at one event (§6.1). */
  readonly id: string
  /** The `webhook-timestamp` header, Unix seconds. */
  readonly timestamp: number
  readonly payload: unknown
}
