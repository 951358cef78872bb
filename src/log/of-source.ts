import { isObject } from '../protocol/event.ts'
import { parseJson } from '../protocol/json.ts'
import { webhookEvent } from '../protocol/webhook-event.ts'

/**
 * Whether an event, as JSON, is of a source: its own, or that of the entry because of which a process has appended it.
 */
export function isOfSource(json: string, source: string): boolean {
  const event = parseJson(json)
  if (!isObject(event)) return false
  return event['source'] === source || (isObject(event['cause']) && event['cause']['source'] === source)
}

/** Whether a webhook, as JSON, is of a source. */
export function isWebhookOfSource(json: string, source: string): boolean {
  return webhookEvent(parseJson(json)).source === source
}
