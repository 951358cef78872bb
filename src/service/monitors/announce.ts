import type { MonitorEvent } from '../../protocol/monitor.ts'
import type { WebhookPayload } from '../../protocol/webhook.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import type { StoredMonitor } from './store.ts'

/** Posts the outcome of an execution to the monitor's webhook, if it has this event type (§6.2). */
export function announce(
  { id, request }: StoredMonitor,
  outcome: { readonly groupId: string; readonly at: string; readonly events: readonly MonitorEvent[] },
  outbox: Outbox,
): void {
  const { webhook, metadata } = request
  const [first] = outcome.events
  if (webhook === undefined || first === undefined) return
  const payload = payloadFor(first)
  if (webhook.event_types.some((type) => type === payload.type)) outbox.post(webhook.url, payload)

  function payloadFor(event: MonitorEvent): WebhookPayload {
    const about = { monitor_id: id, ...(metadata !== undefined && { metadata }) }
    const timestamp = outcome.at
    const group = { event_group_id: outcome.groupId }
    switch (event.event_type) {
      case 'completion':
        return {
          type: 'monitor.execution.completed',
          timestamp,
          data: { ...about, event: { ...event, ...group } },
        }
      case 'error':
        return {
          type: 'monitor.execution.failed',
          timestamp,
          data: { ...about, event: { ...event, ...group } },
        }
      default:
        return { type: 'monitor.event.detected', timestamp, data: { ...about, event: group } }
    }
  }
}
