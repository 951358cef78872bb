import type { IncomingMessage, ServerResponse } from 'node:http'
import { adaptedHandler } from './fetch-handler.ts'
import type { FetchHandler } from './fetch-handler.ts'
import type { HttpAnswer } from './handler.ts'
import { streamAnswer, writeAnswer } from './node-answer.ts'
import { NodeRequest, webRequest } from './node-request.ts'

/** What answers a `Request` with a `Response`. */
interface Handling {
  handle(request: Request): Promise<Response>
}

/**
 * A listener for `node:http` and `node:https` servers, and a route handler for frameworks built on them. Mount it ahead
 * of anything that parses bodies: it throws a TypeError where the body was read before, or given an encoding. It takes a
 * `handle` of your own as well. A `Response` whose body is a stream is sent chunk by chunk, as fast as the socket takes
 * them, and the stream is cancelled when the connection closes.
 *
 * @example
 * createServer(nodeListener(receiver)).listen(3000)
 */
export function nodeListener(
  receiver: Handling,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    // Thrown here, where a framework's error handler sees it: the exact bytes are gone, and no signature can fit.
    if (incoming.readableDidRead || incoming.readableEncoding !== null) {
      throw new TypeError(
        'the body was read before, or given an encoding: mount nodeListener ahead of whatever parses bodies',
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
  const given = await (handler?.(new NodeRequest(incoming)) ?? answerOf(receiver, incoming))
  const { body } = given
  if (typeof body === 'string') writeAnswer(incoming, outgoing, given, new TextEncoder().encode(body))
  // An empty answer is written at once: a delivery follows its answer by one turn of the event loop.
  else if (!body) writeAnswer(incoming, outgoing, given)
  else await streamAnswer(incoming, outgoing, given, body)
}

/** What a `handle` answers that is not adapted from a handler. */
async function answerOf(receiver: Handling, incoming: IncomingMessage): Promise<HttpAnswer> {
  const request = webRequest(incoming)
  return request === undefined ? { status: 400 } : receiver.handle(request)
}
