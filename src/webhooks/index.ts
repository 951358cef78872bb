/**
 * The receiver of webhooks, and their signatures, on every runtime with `Request` and `Response`.
 *
 * @module rivulet/webhooks
 */
export { ArgumentError } from '../protocol/argument-error.ts'
export { memoryInbox } from './memory-inbox.ts'
export type { MemoryInbox, MemoryInboxOptions } from './memory-inbox.ts'
export type * from '../protocol/webhook.ts'
export type { BodyFailure, IncomingBody } from '../http/body-intake.ts'
export type { FetchHandler } from '../http/fetch-handler.ts'
export type { HttpHandler, HttpRequest, HttpResponse } from '../http/handler.ts'
export { nodeListener } from '../http/node-listener.ts'
export type { NodeIncoming, NodeOutgoing } from '../http/node-message.ts'
export { createWebhookReceiver } from './receiver.ts'
export type { WebhookReceiver, WebhookReceiverOptions } from './receiver.ts'
export type { WebhookRefusal, WebhookRefusalCode } from './refusal.ts'
export { signedRequest, signWebhook, verifySignature } from './signature.ts'
export type {
  SignedContent,
  SignedRequestOptions,
  WebhookHeaders,
  WebhookSecret,
  WebhookSecrets,
  WebhookToSign,
} from './signature.ts'
