import type { IncomingBody } from './body-intake.ts'
import type { HttpRequest } from './handler.ts'
import type { NodeBody, NodeIncoming } from './node-message.ts'

/** A request of `node:http` for a handler. */
export class NodeRequest implements HttpRequest {
  readonly #incoming: NodeIncoming

  constructor(incoming: NodeIncoming) {
    this.#incoming = incoming
  }

  get method(): string {
    return this.#incoming.method ?? 'GET'
  }

  // From the raw lines: `headers` keeps only the first line of some headers, and `headersDistinct` creates an array for each.
  header(name: string): string | null {
    const { rawHeaders } = this.#incoming
    let value: string | null = null
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const raw = rawHeaders[i]
      if (raw?.length !== name.length || raw.toLowerCase() !== name) continue
      const line = rawHeaders[i + 1] ?? ''
      value = value === null ? line : `${value}, ${line}`
    }
    return value
  }

  read(body: IncomingBody): void {
    readIncoming(this.#incoming, body)
  }
}

/** Reads the body of a request of `node:http` by its events, without a promise per chunk. Drops data after the body is settled. */
export function readIncoming(incoming: NodeBody, body: IncomingBody): void {
  if (incoming.destroyed) return body.fail('incomplete_body')
  incoming.on('data', (chunk: Uint8Array) => body.add(chunk))
  incoming.on('end', () => body.end())
  // `close` follows the end too, when the body is settled. Without a listener for errors, none is emitted.
  incoming.on('close', () => body.fail('incomplete_body'))
  // Middleware may have paused it.
  incoming.resume()
  // Most bodies arrive together with their headers. A timer for each of them is measurable.
  setImmediate(() => body.startTimer())
}

/**
 * The same request as a `Request`, or undefined if that cannot represent it.
 *
 * @param signal Aborted when the client is gone.
 */
export function webRequest(incoming: NodeIncoming, signal: AbortSignal): Request | undefined {
  const { method = 'GET', headers } = incoming
  // HTTP/2 has its own field for the host, which may stand beside the header.
  const host = headers[':authority'] ?? headers['host'] ?? 'localhost'
  try {
    const hasBody = method !== 'GET' && method !== 'HEAD'
    return new Request(new URL(wholeUrl(incoming), `http://${String(host)}`), {
      method,
      headers: webHeaders(incoming),
      signal,
      ...(hasBody && { body: webBody(incoming), duplex: 'half' }),
    })
  } catch {
    return undefined
  }
}

/** The URL as the client has sent it. Express, Connect and others cut the prefix of a mount off `url`, and keep the whole of it. */
function wholeUrl(incoming: NodeIncoming & { readonly originalUrl?: unknown }): string {
  const { url = '/', originalUrl } = incoming
  return typeof originalUrl === 'string' ? originalUrl : url
}

function webHeaders({ rawHeaders }: NodeIncoming): Headers {
  const headers = new Headers()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    // HTTP/2 has the parts of the request line as headers too.
    if (!name.startsWith(':')) headers.append(name, rawHeaders[at + 1] ?? '')
  }
  return headers
}

/** The body, read on demand. Cancelling it leaves the socket open, which the response still needs. */
function webBody(incoming: NodeIncoming): ReadableStream<Uint8Array> {
  const chunks = incoming.iterator({ destroyOnReturn: false })
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await chunks.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
