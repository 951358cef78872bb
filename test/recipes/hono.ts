import { Hono } from 'hono'
import { createWebhookReceiver } from 'rivulet/webhooks'

export const receiver = createWebhookReceiver({ secrets: process.env.RIVULET_WEBHOOK_SECRET ?? '' })

export const app = new Hono()
app.post('/webhooks', (c) => receiver.handle(c.req.raw))
