import type { IncomingMessage, ServerResponse } from 'node:http'
import { acceptBehind } from './accept.ts'
import type { Accept } from './accept.ts'
import { readIncoming } from './body.ts'
import type { WebhookReceiver } from './receiver.ts'
import { refusalAnswer } from './refusal.ts'

/** How long the rest of a body is read and dropped after an answer that did not need it, in ms. */
const LINGER = 1_000

/**
 * A listener for `node:http` and `node:https` servers, and a route handler for frameworks built on them. Mount it ahead
 * of anything that parses bodies: it throws a TypeError where the body was read before, or given an encoding.
 *
 * @example
 * createServer(nodeListener(receiver)).listen(3000)
 */
export function nodeListener(
  receiver: Pick<WebhookReceiver, 'handle'>,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    // Thrown here, where a framework's error handler sees it: the exact bytes are gone, and no signature can fit.
    if (incoming.readableDidRead || incoming.readableEncoding !== null) {
      throw new TypeError(
        'the body was read before, or given an encoding: mount nodeListener ahead of whatever parses bodies',
      )
    }
    const accept = acceptBehind(receiver.handle)
    const answered =
      accept === undefined
        ? answerByHandle(receiver, incoming, outgoing)
        : answerDirectly(accept, incoming, outgoing)
    answered.catch(() => {
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(500).end()
    })
  }
}

/** For a receiver as it is: a `Request` and a `Response` would take as long as all the rest of a webhook. */
async function answerDirectly(
  accept: Accept,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const refusal = await accept({
    method: incoming.method,
    header: (name) => headerOf(incoming, name),
    read: (body) => readIncoming(incoming, body),
  })
  // All of the body has come, or it would have been refused.
  if (refusal === undefined) return void outgoing.writeHead(204).end()
  const { status, headers, body } = refusalAnswer(refusal)
  write(incoming, outgoing, status, headers, new TextEncoder().encode(body))
}

/**
 * One header as `Headers` would have it: several lines of it are joined. Looked for in the raw lines, since few are wanted,
 * and since `headers` leaves out all but the first line of some and `headersDistinct` makes a list for each.
 */
function headerOf({ rawHeaders }: IncomingMessage, name: string): string | undefined {
  let value: string | undefined
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i]
    if (raw?.length !== name.length || raw.toLowerCase() !== name) continue
    const line = rawHeaders[i + 1]
    value = value === undefined ? line : `${value}, ${line}`
  }
  return value
}

/** For a handler of the user's own. */
async function answerByHandle(
  receiver: Pick<WebhookReceiver, 'handle'>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const request = webRequest(incoming)
  if (request === undefined) return write(incoming, outgoing, 400)
  const response = await receiver.handle(request)
  // An empty answer is written at once: a delivery follows its answer by one turn of the event loop.
  const body = response.body === null ? undefined : new Uint8Array(await response.arrayBuffer())
  write(incoming, outgoing, response.status, Object.fromEntries(response.headers), body)
}

function write(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = {},
  body?: Uint8Array,
): void {
  if (outgoing.destroyed) return
  if (body === undefined) outgoing.writeHead(status, headers)
  else outgoing.writeHead(status, { ...headers, 'content-length': body.byteLength }).write(body)
  if (incoming.complete) outgoing.end()
  else endAfterRest(incoming, outgoing)
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
 * Reads on for a while after the answer, and ends it then. A socket that is closed on unread bytes is reset, and its
 * sender might never see why; one that is left open on a body without end is held for ever.
 */
function endAfterRest(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming.destroyed) return void outgoing.end()
  outgoing.flushHeaders()
  const timer = setTimeout(() => incoming.destroy(), LINGER)
  // Comes after the end as well. Without a listener for errors, none is emitted.
  incoming.once('close', () => {
    clearTimeout(timer)
    outgoing.end()
  })
  incoming.resume()
}
