import type { FindAllCandidateEvent, FindAllStatusEvent } from './find-all.ts'
import type { MonitorCompletionEvent, MonitorErrorEvent } from './monitor.ts'
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
type MonitorCompletedWebhook = MonitorWebhookBase<
  'monitor.execution.completed',
  Partial<MonitorCompletionEvent> | null | undefined
>

/** An execution failed (beyond the interface document). */
type MonitorFailedWebhook = MonitorWebhookBase<'monitor.execution.failed', Partial<MonitorErrorEvent>>

/** A FindAll run or one of its candidates changed (beyond the interface document). */
export type FindAllWebhook =
  | Omit<FindAllStatusEvent, 'event_id'>
  /** `findall_id` names the run. A service may omit it. */
  | (Omit<FindAllCandidateEvent, 'event_id'> & { readonly data: { readonly findall_id?: string } })

/** The bodies that the service posts, discriminated by `type` (§6). */
export type WebhookPayload =
  | TaskRunWebhook
  | MonitorDetectedWebhook
  | MonitorCompletedWebhook
  | MonitorFailedWebhook
  | FindAllWebhook

/** A verified webhook request: its id, and its body as parsed, otherwise unchecked JSON. */
export interface WebhookDelivery {
  /** The `webhook-id` header: the same for every attempt at one event (§6.1). */
  readonly id: string
  /** The `webhook-timestamp` header, Unix seconds. */
  readonly timestamp: number
  readonly payload: unknown
}

/** The result of putting a delivery into an inbox: it is stored, it was already stored, or the inbox has no room for it. */
export type InboxOutcome = 'stored' | 'duplicate' | 'full'

/** The store into which a receiver puts verified webhooks before it answers 2xx: `log.inbox` of an open log. */
export interface WebhookInbox {
  /**
   * Stores a delivery whose id is not known. Resolves once it is stored; for a duplicate, once the first copy is. A rejection
   * means that nothing was stored.
   *
   * @param json The text that the payload was parsed from. It is stored as it is.
   */
  put(delivery: WebhookDelivery, json: string): Promise<InboxOutcome>
  /**
   * Whether {@link put} would probably find no room for a delivery with this id. A receiver asks before it reads a body, so that
   * a full inbox takes no memory; without this method it reads every body.
   */
  isFull?(id: string): boolean
}
