import { ArgumentError, hidden } from '../protocol/argument-error.ts'
import type { FetchHandler } from './fetch-handler.ts'
import type { HttpHandler, HttpResponse } from './handler.ts'
import { onceClosed } from './node-message.ts'
import type { NodeIncoming, NodeOutgoing } from './node-message.ts'
import { streamResponse, writeResponse } from './node-response.ts'
import { NodeRequest, webRequest } from './node-request.ts'

/**
 * A listener for `node:http`, `node:https` and `node:http2` servers, and a route handler for frameworks built on them. It takes a receiver,
 * or any function from `Request` to `Response`, such as one that wraps `receiver.handle`. Mount it before any body parser: it
 * throws an {@link ArgumentError} if the body was already read or has an encoding. A `Request` has the whole URL that the client has sent, which
 * frameworks keep as `originalUrl` when they remove the prefix of a mount. A `Response` with a stream as its body is sent with the socket's
 * backpressure; the stream is cancelled when the connection closes.
 *
 * @throws {ArgumentError} for anything else.
 * @example
 * createServer(nodeListener(receiver)).listen(3000)
 */
export function nodeListener(
  handler: HttpHandler | FetchHandler,
): (request: NodeIncoming, response: NodeOutgoing) => void {
  if (typeof handler !== 'function' && typeof handler?.respond !== 'function') {
    throw new ArgumentError('handler', 'a receiver, or a function from Request to Response', handler)
  }
  return (incoming, outgoing) => {
    // Without the exact bytes, no signature matches. Thrown synchronously, for a framework's error handler.
    if (incoming.readableDidRead || incoming.readableEncoding !== null) {
      const message =
        'the body was already read or has an encoding: mount nodeListener before any body parser'
      throw new ArgumentError('request', { message }, hidden(incoming))
    }
    answer(handler, incoming, outgoing).catch(() => {
      if (outgoing.headersSent) outgoing.destroy()
      else {
        outgoing.writeHead(500)
        outgoing.end()
      }
    })
  }
}

async function answer(
  handler: HttpHandler | FetchHandler,
  incoming: NodeIncoming,
  outgoing: NodeOutgoing,
): Promise<void> {
  const response = await (typeof handler === 'function'
    ? fetchResponse(handler, incoming, outgoing)
    : handler.respond(new NodeRequest(incoming)))
  const { body } = response
  if (typeof body === 'string') writeResponse(incoming, outgoing, response, new TextEncoder().encode(body))
  // An empty response is written synchronously, since a delivery follows its response by one turn of the event loop.
  else if (!body) writeResponse(incoming, outgoing, response)
  else await streamResponse(incoming, outgoing, response, body)
}

/** The request's signal is aborted when the connection closes before there is a response. After that, its body is cancelled. */
async function fetchResponse(
  handle: FetchHandler,
  incoming: NodeIncoming,
  outgoing: NodeOutgoing,
): Promise<HttpResponse> {
  const gone = new AbortController()
  const request = webRequest(incoming, gone.signal)
  if (request === undefined) return { status: 400 }
  const stop = onceClosed(incoming, outgoing, () => gone.abort())
  try {
    return await handle(request)
  } finally {
    stop()
  }
}
