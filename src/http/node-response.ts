import type { HttpResponse } from './handler.ts'
import { isGone, onceClosed, setHeaders } from './node-message.ts'
import type { NodeIncoming, NodeOutgoing } from './node-message.ts'

/** How long the rest of a request's body is read and dropped after an early response, in ms. */
const LINGER = 1_000

/** Writes a response with a complete body, synchronously. */
export function writeResponse(
  incoming: NodeIncoming,
  outgoing: NodeOutgoing,
  { status, headers }: HttpResponse,
  body?: Uint8Array,
): void {
  if (isGone(incoming, outgoing)) return
  if (headers !== undefined) setHeaders(incoming, outgoing, headers)
  if (body === undefined) outgoing.writeHead(status)
  else {
    outgoing.setHeader('content-length', body.byteLength)
    outgoing.writeHead(status)
    outgoing.write(body)
  }
  endResponse(incoming, outgoing)
}

/**
 * Writes a response with a stream as its body, with the socket's backpressure. Cancels the stream when the connection closes.
 * A body of one chunk, as most are, is sent with its length.
 */
export async function streamResponse(
  incoming: NodeIncoming,
  outgoing: NodeOutgoing,
  response: HttpResponse,
  stream: ReadableStream<Uint8Array>,
): Promise<void> {
  const reader = stream.getReader()
  // After the stream failed, this promise rejects too; the first rejection is reported.
  const cancel = () => void reader.cancel().catch(() => undefined)
  if (isGone(incoming, outgoing)) return cancel()
  let resume = () => {}
  let failure: { readonly error: unknown } | undefined
  /** Returns a promise only if the socket is full. */
  const write = (chunk: Uint8Array): Promise<void> | undefined => {
    // The chunk was read before the stream failed.
    if (failure !== undefined) throw failure.error
    if (outgoing.write(chunk) || isGone(incoming, outgoing)) return undefined
    return new Promise<void>((resolve) => {
      resume = resolve
    })
  }
  const stop = onceClosed(incoming, outgoing, () => {
    cancel()
    resume()
  })
  outgoing.on('drain', () => resume())
  // A stream that fails ends a response whose client does not read.
  reader.closed.catch((error: unknown) => {
    failure = { error }
    resume()
  })
  try {
    const first = await reader.read()
    if (first.done) return writeResponse(incoming, outgoing, response, new Uint8Array())
    const second = reader.read()
    const isWhole = await Promise.race([second.then(({ done }) => done), nextTurn(false)])
    if (isWhole) return writeResponse(incoming, outgoing, response, first.value)
    if (isGone(incoming, outgoing)) return

    if (response.headers !== undefined) setHeaders(incoming, outgoing, response.headers)
    outgoing.writeHead(response.status)
    await write(first.value)
    for (let chunk = await second; !chunk.done; chunk = await reader.read()) {
      const drained = write(chunk.value)
      if (drained !== undefined) await drained
    }
    endResponse(incoming, outgoing)
  } finally {
    stop()
    cancel()
  }
}

function nextTurn<T>(value: T): Promise<T> {
  return new Promise((resolve) => {
    setImmediate(resolve, value)
  })
}

function endResponse(incoming: NodeIncoming, outgoing: NodeOutgoing): void {
  if (incoming.complete) outgoing.end()
  else endAfterRest(incoming, outgoing)
}

/**
 * Keeps reading for a while before it ends the response. Closing a socket with unread bytes resets it, and its sender may
 * never read the response. Without a limit, an endless body would keep the socket open forever.
 */
function endAfterRest(incoming: NodeIncoming, outgoing: NodeOutgoing): void {
  if (incoming.destroyed) {
    outgoing.end()
    return
  }
  outgoing.flushHeaders?.()
  const timer = setTimeout(() => incoming.destroy(), LINGER)
  // `close` follows the end too. Without a listener for errors, none is emitted.
  incoming.once('close', () => {
    clearTimeout(timer)
    outgoing.end()
  })
  incoming.resume()
}
