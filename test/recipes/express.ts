import type { RequestListener } from 'node:http'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'

export const receiver = createWebhookReceiver({ secrets: process.env.RIVULET_WEBHOOK_SECRET ?? '' })

/** `app.post('/webhooks', webhooks)`, before `app.use(express.json())`. */
export const webhooks: RequestListener = nodeListener(receiver)
