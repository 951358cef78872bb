import { isObject, parseJson } from '../../protocol/json.ts'
import { webhookEvent } from '../../protocol/webhook-event.ts'

/**
 * Whether an event, as JSON, is of a source: its own, or that of the entry because of which a process has appended it, or the first
 * of several processes.
 */
export function isOfSource(json: string, source: string): boolean {
  const event = parseJson(json)
  if (!isObject(event)) return false
  const { cause } = event
  return (
    event['source'] === source ||
    (isObject(cause) && (cause['source'] === source || cause['origin'] === source))
  )
}

/** Whether a webhook, as JSON, is of a source. */
export function isWebhookOfSource(json: string, source: string): boolean {
  return webhookEvent(parseJson(json)).source === source
}
