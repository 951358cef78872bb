import { createWebhookReceiver } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'

let receiver: WebhookReceiver | undefined

export async function POST(request: Request): Promise<Response> {
  receiver ??= started()
  return receiver.handle(request)
}

/** Called at the first request, since the build imports this module without a secret. */
function started(): WebhookReceiver {
  const created = createWebhookReceiver({ secrets: process.env.RIVULET_WEBHOOK_SECRET ?? '' })
  created.deliveries.subscribe(({ id }) => process.stdout.write(`${id}\n`))
  return created
}
