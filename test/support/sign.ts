import { createHmac } from 'node:crypto'
import type { WebhookHeaders, WebhookToSign } from 'rivulet/webhooks'

let signed = 0

/** Signs as the service does, independently of the library's code. */
export function sign(webhook: WebhookToSign): WebhookHeaders {
  signed += 1
  const { body, secrets, id = `msg_signed_${signed}` } = webhook
  const { timestamp = Math.floor(Date.now() / 1000) } = webhook
  const entries = [secrets]
    .flat()
    .map((secret) => createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64'))
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': entries.map((entry) => `v1,${entry}`).join(' '),
  }
}
