import { request } from 'node:http'
import type { OutgoingHttpHeaders } from 'node:http'

/** A request with any headers, also those that `fetch` does not let a program set. */
export interface RawRequest {
  readonly method?: string
  /** The target as it is sent. */
  readonly target?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string
}

/** The response to a {@link RawRequest}, read to its end, or until its headers for an event stream. */
export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
}

/** Sends a request to a server over a socket of its own. */
export function sendRaw(
  base: string,
  { method = 'GET', target = '/', headers = {}, body }: RawRequest,
): Promise<RawResponse> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, method, path: target, headers, agent: false }, (incoming) => {
      const { statusCode: status = 0 } = incoming
      if (incoming.headers['content-type'] === 'text/event-stream') {
        resolve({ status, headers: incoming.headers, text: '' })
        outgoing.destroy()
        return
      }
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () =>
        resolve({ status, headers: incoming.headers, text: Buffer.concat(chunks).toString() }),
      )
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
