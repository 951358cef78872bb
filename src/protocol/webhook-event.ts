import { isObject, isRun, monitorEvent, monitorSource, runEvent, unknownEvent } from './event.ts'
import type { ResearchEvent } from './event.ts'
import { isId } from './id.ts'

/** The source of webhooks that name no resource known to this version. */
const WEBHOOKS = '/v1/webhooks'

/** Where the events are that a thin webhook announces (§6.2). */
export interface Detection {
  readonly monitorId: string
  readonly eventGroupId: string
}

/**
 * The event that a webhook's body stands for (§6), by itself and without asking the service.
 *
 * A run has the identity that the group's streams give it; a monitor's completion or error the one that its list of
 * events gives it (both beyond the interface document). A detection carries no events, so it is `unknown` with the
 * monitor as its source: see {@link detection}. Anything else is `unknown` too. Never throws. `receivedAt` is Unix time in ms.
 */
export function webhookEvent(payload: unknown, receivedAt: number = Date.now()): ResearchEvent {
  if (!isObject(payload)) return unknownEvent(WEBHOOKS, payload, 'webhook', undefined, receivedAt)
  const { data } = payload
  if (payload['type'] === 'task_run.status' && isRun(data))
    return runEvent({ run: data }, 'webhook', undefined, receivedAt)

  const monitorId = isObject(data) ? data['monitor_id'] : undefined
  if (!isId(monitorId)) return unknownEvent(WEBHOOKS, payload, 'webhook', undefined, receivedAt)
  switch (payload['type']) {
    case 'monitor.event.detected':
      return unknownEvent(monitorSource(monitorId), payload, 'webhook', undefined, receivedAt)
    case 'monitor.execution.completed':
      return execution(monitorId, payload, 'completion', receivedAt)
    case 'monitor.execution.failed':
      return execution(monitorId, payload, 'error', receivedAt)
    default:
      return unknownEvent(WEBHOOKS, payload, 'webhook', undefined, receivedAt)
  }
}

/**
 * What is to be fetched for this webhook's body; undefined for all but a monitor's detection. The ids become part of a
 * request, so what could lead to another path is none.
 */
export function detection(payload: unknown): Detection | undefined {
  if (!isObject(payload) || payload['type'] !== 'monitor.event.detected') return undefined
  const { data } = payload
  if (!isObject(data) || !isObject(data['event'])) return undefined
  const monitorId = data['monitor_id']
  const eventGroupId = data['event']['event_group_id']
  return isId(monitorId) && isId(eventGroupId) ? { monitorId, eventGroupId } : undefined
}

/** An execution's one outcome, in the shape in which the list of events has it. */
function execution(
  monitorId: string,
  payload: Readonly<Record<string, unknown>>,
  kind: 'completion' | 'error',
  receivedAt: number,
): ResearchEvent {
  const { data } = payload
  const event = isObject(data) && isObject(data['event']) ? data['event'] : {}
  const timestamp = event['timestamp'] ?? payload['timestamp']
  // Without its time the execution cannot be told from the others of this monitor.
  if (!isText(timestamp))
    return unknownEvent(monitorSource(monitorId), payload, 'webhook', undefined, receivedAt)

  const wire = { ...event, event_type: kind, timestamp }
  if (kind === 'completion') return monitorEvent(monitorId, wire, 'webhook', receivedAt)
  // The type promises a message, so there is one even where the service gave none.
  const message = isText(event['error_message']) ? event['error_message'] : ''
  return monitorEvent(monitorId, { ...wire, error_message: message }, 'webhook', receivedAt)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
