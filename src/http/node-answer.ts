import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpAnswer } from './handler.ts'

/** How long the rest of a body is read and dropped after an answer that did not need it, in ms. */
const LINGER = 1_000

/** Writes an answer whose body is complete, all of it in this turn of the event loop. */
export function writeAnswer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { status, headers }: HttpAnswer,
  body?: Uint8Array,
): void {
  if (outgoing.destroyed) return
  if (headers !== undefined) outgoing.setHeaders(headers)
  if (body === undefined) outgoing.writeHead(status)
  else outgoing.setHeader('content-length', body.byteLength).writeHead(status).write(body)
  endAnswer(incoming, outgoing)
}

/**
 * Writes an answer whose body is a stream, as fast as the socket takes it, and cancels the stream when the connection
 * closes. A body of one chunk, which most are, is sent with its length.
 */
export async function streamAnswer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  answer: HttpAnswer,
  stream: ReadableStream<Uint8Array>,
): Promise<void> {
  const { socket } = incoming
  const reader = stream.getReader()
  // The promise of a stream that failed rejects once more here; the first rejection is the one that counts.
  const cancel = () => void reader.cancel().catch(() => undefined)
  if (socket.destroyed) return cancel()
  let resume = () => {}
  const write = async (chunk: Uint8Array) => {
    if (outgoing.write(chunk) || socket.destroyed) return
    await new Promise<void>((resolve) => {
      resume = resolve
    })
  }
  const onClose = () => {
    cancel()
    resume()
  }
  // Not the `close` of `outgoing`: an answer that waits behind a pipelined one does not emit it in every Node.
  socket.on('close', onClose)
  outgoing.on('drain', () => resume())
  try {
    const first = await reader.read()
    if (first.done) return writeAnswer(incoming, outgoing, answer, new Uint8Array())
    const second = reader.read()
    const isWhole = await Promise.race([second.then(({ done }) => done), nextTurn(false)])
    if (isWhole) return writeAnswer(incoming, outgoing, answer, first.value)

    if (answer.headers !== undefined) outgoing.setHeaders(answer.headers)
    outgoing.writeHead(answer.status)
    await write(first.value)
    for (let chunk = await second; !chunk.done; chunk = await reader.read()) await write(chunk.value)
    endAnswer(incoming, outgoing)
  } finally {
    socket.off('close', onClose)
    cancel()
  }
}

function nextTurn<T>(value: T): Promise<T> {
  return new Promise((resolve) => {
    setImmediate(resolve, value)
  })
}

function endAnswer(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming.complete) outgoing.end()
  else endAfterRest(incoming, outgoing)
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
