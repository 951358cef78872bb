import { executionOf, isRun, monitorEvent, monitorSource, runEvent, unknownEvent } from './event.ts'
import { isObject, isText } from './json.ts'
import type { EventOf, ResearchEvent } from './event.ts'
import { findAllEvent } from './find-all-event.ts'
import { isId } from './id.ts'

/** The source of webhooks without a resource that this version knows. */
const WEBHOOKS = '/v1/webhooks'

/** The ids by which to fetch the events of a thin webhook (§6.2). */
export interface Detection {
  readonly monitorId: string
  readonly eventGroupId: string
}

/**
 * The event of a webhook's body (§6), made without a request to the service.
 *
 * A run has the same identity as in the group's streams; a monitor's completion or error the same as in its list of events;
 * a FindAll run and its candidates the same as in the run's stream (all beyond the interface document). A candidate's webhook
 * without a `findall_id`, in its `data` or beside it, is `unknown`, since its run is not known. A detection contains no events, so it is `unknown` with the monitor as its source:
 * see {@link detection}. Anything else is `unknown` too. Never throws. `receivedAt` is Unix time in ms.
 */
export function webhookEvent(payload: unknown, receivedAt: number = Date.now()): ResearchEvent {
  if (!isObject(payload)) return unknownEvent(WEBHOOKS, payload, 'webhook', undefined, receivedAt)
  const { data } = payload
  if (payload['type'] === 'task_run.status' && isRun(data))
    return runEvent({ run: data }, 'webhook', undefined, receivedAt)
  if (isText(payload['type']) && payload['type'].startsWith('findall.'))
    return findAllWebhook(payload, receivedAt)

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

/** The ids to fetch for a monitor's detection; undefined for any other body, or for an id that is not safe in a path. */
export function detection(payload: unknown): Detection | undefined {
  if (!isObject(payload) || payload['type'] !== 'monitor.event.detected') return undefined
  const { data } = payload
  if (!isObject(data)) return undefined
  const monitorId = data['monitor_id']
  const eventGroupId = executionOf(data['event'])
  return isId(monitorId) && isId(eventGroupId) ? { monitorId, eventGroupId } : undefined
}

/** Whether the event lacks the output or the error of its run, which a duplicate has. */
export function isPartial(event: ResearchEvent): event is EventOf<'task_run.state'> {
  if (event.type !== 'task_run.state') return false
  const { run, output } = event.data
  if (run.status === 'completed') return output == null
  return run.status === 'failed' && run.error == null
}

function findAllWebhook(payload: Readonly<Record<string, unknown>>, receivedAt: number): ResearchEvent {
  const { data } = payload
  const findAllId = (isObject(data) ? data['findall_id'] : undefined) ?? payload['findall_id']
  if (!isId(findAllId)) return unknownEvent(WEBHOOKS, payload, 'webhook', undefined, receivedAt)
  return findAllEvent(findAllId, payload, 'webhook', undefined, receivedAt)
}

/** An execution's outcome, in the same shape as in the list of events. */
function execution(
  monitorId: string,
  payload: Readonly<Record<string, unknown>>,
  kind: 'completion' | 'error',
  receivedAt: number,
): ResearchEvent {
  const { data } = payload
  const event = isObject(data) && isObject(data['event']) ? data['event'] : {}
  const timestamp = event['timestamp'] ?? payload['timestamp']
  // Without its timestamp, the execution cannot be distinguished from others of this monitor.
  if (!isText(timestamp))
    return unknownEvent(monitorSource(monitorId), payload, 'webhook', undefined, receivedAt)

  const wire = { ...event, event_type: kind, timestamp }
  if (kind === 'completion') return monitorEvent(monitorId, wire, 'webhook', receivedAt)
  // The type has a message, so it is empty if the service sent none.
  const message = isText(event['error_message']) ? event['error_message'] : ''
  return monitorEvent(monitorId, { ...wire, error_message: message }, 'webhook', receivedAt)
}
