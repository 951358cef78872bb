import type { WebhookInbox } from '../protocol/webhook.ts'
import type { InboxStore } from './store/inbox-store.ts'

/** The calls of a log's inbox that a receiver may use. */
export function storingInbox(store: InboxStore): WebhookInbox {
  return {
    put: (delivery, json) => store.put(delivery, json),
    isFull: (id) => store.isFull(id),
  }
}
