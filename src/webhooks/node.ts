import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished } from 'node:stream'
import type { WebhookReceiver } from './receiver.ts'

/** How long the rest of a body is read and dropped after an answer that did not need it, in ms. */
const LINGER = 1_000

/**
 * A listener for `node:http` and `node:https` servers, and a route handler for frameworks built on them. Mount it ahead
 * of anything that parses bodies: it throws a TypeError where the body was read before.
 *
 * @example
 * createServer(nodeListener(receiver)).listen(3000)
 */
export function nodeListener(
  receiver: Pick<WebhookReceiver, 'handle'>,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    // Thrown here, where a framework's error handler sees it: the exact bytes are gone, and no signature can fit.
    if (incoming.readableDidRead) {
      throw new TypeError('the body was read before: mount nodeListener ahead of whatever parses bodies')
    }
    answer(receiver, incoming, outgoing).catch(() => {
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(500).end()
    })
  }
}

async function answer(
  receiver: Pick<WebhookReceiver, 'handle'>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const request = webRequest(incoming)
  const response =
    request === undefined ? new Response(null, { status: 400 }) : await receiver.handle(request)
  // An empty answer is written at once: a delivery follows its answer by one turn of the event loop.
  const body = response.body === null ? undefined : new Uint8Array(await response.arrayBuffer())
  if (outgoing.destroyed) return
  outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(body)
  if (!incoming.complete) dropRest(incoming)
}

/** The request as the web knows it, or undefined for one that cannot be expressed so. */
function webRequest(incoming: IncomingMessage): Request | undefined {
  const { method = 'GET', headers, url = '/' } = incoming
  try {
    const hasBody = method !== 'GET' && method !== 'HEAD'
    return new Request(new URL(url, `http://${headers.host ?? 'localhost'}`), {
      method,
      headers: webHeaders(incoming),
      ...(hasBody && { body: webBody(incoming), duplex: 'half' }),
    })
  } catch {
    return undefined
  }
}

function webHeaders(incoming: IncomingMessage): Headers {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(incoming.headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  return headers
}

/** The body, read as it is asked for. Cancelling it leaves the socket open, which the answer still needs. */
function webBody(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = incoming.iterator({ destroyOnReturn: false })
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

/**
 * Reads on for a while after the answer. A socket that is closed on unread bytes is reset, and its sender might never
 * see why; one that is left open on a body without end is held for ever.
 */
function dropRest(incoming: IncomingMessage): void {
  const timer = setTimeout(() => incoming.destroy(), LINGER)
  finished(incoming, () => clearTimeout(timer))
  incoming.resume()
}
