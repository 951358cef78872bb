import type { WebhookPayload } from '../../protocol/webhook.ts'

/** Webhooks on their way out. */
export interface Outbox {
  /**
   * Stores a webhook for delivery. It is written at once, within the transaction that is open, so that what happened
   * and the word of it are stored together.
   */
  post(url: string, payload: WebhookPayload): void
}
