import { createServer } from 'node:http'
import { isIPv6 } from 'node:net'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import type { WebhookInbox, WebhookReceiver } from 'rivulet/webhooks'
import { Subject } from 'rxjs'
import type { Observable } from 'rxjs'
import { variable } from './environment.ts'
import { UsageError } from './exit.ts'
import { listenOn } from './listening.ts'

/** A webhook receiver with an HTTP server. Disposing of it closes both. */
export interface WebhookEndpoint extends AsyncDisposable {
  readonly url: string
  readonly receiver: WebhookReceiver
  /** The status of each response, also to duplicates and refused requests. */
  readonly responses: Observable<number>
}

/** Settings of {@link openWebhookEndpoint}. */
export interface WebhookEndpointOptions {
  /** 0 is any free port. Default 0. */
  readonly port?: number
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default: one in memory. It is not closed. */
  readonly inbox?: WebhookInbox
}

/** Receives webhooks signed with the secret, on a port of this machine. */
export async function openWebhookEndpoint(
  secret: string,
  { port = 0, host = '127.0.0.1', inbox }: WebhookEndpointOptions = {},
): Promise<WebhookEndpoint> {
  const receiver = createWebhookReceiver({ secrets: secret, ...(inbox !== undefined && { inbox }) })
  const responses = new Subject<number>()
  const handle = async (request: Request) => {
    const response = await receiver.handle(request)
    responses.next(response.status)
    return response
  }
  const server = createServer(nodeListener(handle))
  const bound = await listenOn(server, port, host)

  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${bound}/`,
    receiver,
    responses: responses.asObservable(),
    async [Symbol.asyncDispose]() {
      receiver.close()
      responses.complete()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** The secret that signs webhooks. It is read only from the environment, since other users of the machine can read a command line. */
export function webhookSecret(): string {
  const secret = variable('RIVULET_WEBHOOK_SECRET')
  if (secret !== undefined) return secret
  throw new UsageError('RIVULET_WEBHOOK_SECRET is not set: webhooks cannot be verified without it')
}
