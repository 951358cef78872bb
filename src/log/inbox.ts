import type { WebhookInbox } from '../protocol/webhook.ts'
import type { InboxStore } from './store/inbox-store.ts'

/** What a receiver may do with the inbox of a log. */
export function storingInbox(store: InboxStore): WebhookInbox {
  return {
    put: (delivery, json) => store.put(delivery, json),
    isFull: (id) => store.isFull(id),
  }
}
