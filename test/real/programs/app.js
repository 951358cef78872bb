// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
// A user's server as a function from Request to Response, the same on every runtime.
import { createWebhookReceiver } from 'rivulet/webhooks'
import { pipeline } from './pipeline.js'

/** With an inbox of its own where the runtime ends what a request leaves behind. */
export function createApp({ baseUrl, apiKey, secret }, inbox) {
  const received = []
  const receiver = createWebhookReceiver({ secrets: secret, maxBodyBytes: 1_000, inbox: inbox?.(received) })
  if (inbox === undefined) receiver.deliveries.subscribe(({ id }) => received.push(id))
  return async (request) => {
    switch (new URL(request.url).pathname) {
      case '/webhooks':
        return receiver.handle(request)
      case '/received':
        return Response.json(received)
      default:
        return Response.json(await pipeline({ baseUrl, apiKey }))
    }
  }
}
