/**
 * The receiver of webhooks, their signatures, and a sink that posts events, on every runtime with `Request` and `Response`.
 *
 * @module rivulet/webhooks
 */
export { httpSink } from './http-sink.ts'
export { memoryInbox } from './memory-inbox.ts'
export type { MemoryInbox } from './memory-inbox.ts'
export type { WebhookDelivery, WebhookInbox, WebhookPayload } from '../protocol/webhook.ts'
export { nodeListener } from '../http/node-listener.ts'
export type { NodeIncoming, NodeOutgoing } from '../http/node-message.ts'
export { createWebhookReceiver } from './receiver.ts'
export type { WebhookReceiver, WebhookReceiverOptions } from './receiver.ts'
export type { WebhookRefusal } from './refusal.ts'
export { signedRequest, signWebhook, verifySignature } from './signature.ts'
export type { WebhookHeaders, WebhookSecrets, WebhookToSign } from './signature.ts'
export { SinkError } from './sink/sink-error.ts'
