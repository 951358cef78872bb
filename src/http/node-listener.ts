import type { IncomingMessage, ServerResponse } from 'node:http'
import { adaptedHandler } from './fetch-handler.ts'
import type { FetchHandler } from './fetch-handler.ts'
import type { HttpResponse } from './handler.ts'
import { streamResponse, writeResponse } from './node-response.ts'
import { NodeRequest, webRequest } from './node-request.ts'

/** Answers a `Request` with a `Response`. */
interface Handling {
  handle(request: Request): Promise<Response>
}

/**
 * A listener for `node:http` and `node:https` servers, and a route handler for frameworks built on them. Mount it before any
 * body parser: it throws a TypeError if the body was already read or has an encoding. It accepts a custom `handle` too. A
 * `Response` with a stream as its body is sent with the socket's backpressure; the stream is cancelled when the connection
 * closes.
 *
 * @example
 * createServer(nodeListener(receiver)).listen(3000)
 */
export function nodeListener(
  receiver: Handling,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    // Without the exact bytes, no signature matches. Thrown synchronously, for a framework's error handler.
    if (incoming.readableDidRead || incoming.readableEncoding !== null) {
      throw new TypeError(
        'the body was already read or has an encoding: mount nodeListener before any body parser',
      )
    }
    answer(receiver, incoming, outgoing).catch(() => {
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(500).end()
    })
  }
}

async function answer(
  receiver: Handling,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const handle: FetchHandler = receiver.handle
  const handler = adaptedHandler(handle)
  const response = await (handler?.(new NodeRequest(incoming)) ?? responseOf(receiver, incoming))
  const { body } = response
  if (typeof body === 'string') writeResponse(incoming, outgoing, response, new TextEncoder().encode(body))
  // An empty response is written synchronously, since a delivery follows its response by one turn of the event loop.
  else if (!body) writeResponse(incoming, outgoing, response)
  else await streamResponse(incoming, outgoing, response, body)
}

/** The response of a custom `handle`. */
async function responseOf(receiver: Handling, incoming: IncomingMessage): Promise<HttpResponse> {
  const request = webRequest(incoming)
  return request === undefined ? { status: 400 } : receiver.handle(request)
}
