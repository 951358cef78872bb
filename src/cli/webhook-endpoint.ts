import { createServer } from 'node:http'
import { isIPv6 } from 'node:net'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import type { Inbox, WebhookReceiver } from 'rivulet/webhooks'
import { Subject } from 'rxjs'
import type { Observable } from 'rxjs'

/** A webhook receiver that listens for HTTP, until it is disposed of. */
export interface WebhookEndpoint extends AsyncDisposable {
  readonly url: string
  readonly receiver: WebhookReceiver
  /** The status of each answer, as it is given: also of those to duplicates and to what was refused. */
  readonly answers: Observable<number>
}

/** Where webhooks are received, and where they wait. */
export interface WebhookEndpointOptions {
  /** 0 takes a free one. Default 0. */
  readonly port?: number
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default: one in memory. It is left open. */
  readonly inbox?: Inbox
}

/** Receives webhooks that are signed with the secret on a port of this machine. */
export async function openWebhookEndpoint(
  secret: string,
  { port = 0, host = '127.0.0.1', inbox }: WebhookEndpointOptions = {},
): Promise<WebhookEndpoint> {
  const receiver = createWebhookReceiver({ secrets: secret, ...(inbox !== undefined && { inbox }) })
  const answers = new Subject<number>()
  const handle = async (request: Request) => {
    const response = await receiver.handle(request)
    answers.next(response.status)
    return response
  }
  const server = createServer(nodeListener({ handle }))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string')
    throw new Error('the webhook endpoint listens on no port')

  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${address.port}/`,
    receiver,
    answers: answers.asObservable(),
    async [Symbol.asyncDispose]() {
      receiver.close()
      answers.complete()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
