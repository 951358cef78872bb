import type { WebhookPayload } from '../../protocol/webhook.ts'

/** Stores webhooks for delivery. */
export interface Outbox {
  /** Stores a webhook within the current transaction, so that it is committed together with the change that it reports. */
  post(url: string, payload: WebhookPayload): void
}
