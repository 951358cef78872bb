import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { serve } from '../../support/serve.ts'

/** A received webhook request. */
export interface Received {
  readonly method: string | undefined
  readonly id: string
  readonly timestamp: number
  readonly signatures: readonly string[]
  readonly contentType: string | undefined
  readonly body: Buffer
}

/** Handles the n-th request, counted from 1: responds with a status, or anything else. */
export type Respond = (
  n: number,
  response: ServerResponse,
  received: Received,
) => number | void | Promise<number | void>

/** An HTTP server that stores every webhook, and responds with 200 by default. */
export async function startReceiver(respond: Respond = () => 200) {
  const received: Received[] = []
  const url = await serve(async (request, response) => {
    const { headers, method } = request
    const hook: Received = {
      method,
      id: String(headers['webhook-id']),
      timestamp: Number(headers['webhook-timestamp']),
      signatures: String(headers['webhook-signature']).split(' '),
      contentType: headers['content-type'],
      body: await buffer(request),
    }
    received.push(hook)
    const status = await respond(received.length, response, hook)
    if (typeof status === 'number') response.writeHead(status).end()
  })
  return { url: `${url}/hook?token=1`, received }
}

/** The signature that a request should carry for a secret, as §6.1 defines it. */
export function expectedSignature(secret: string, { id, timestamp, body }: Received): string {
  const hmac = createHmac('sha256', Buffer.from(secret, 'utf8'))
  hmac.update(Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]))
  return `v1,${hmac.digest('base64')}`
}
