import { ArgumentError, hidden } from '../protocol/argument-error.ts'
import type { IncomingBody } from './body-intake.ts'
import type { HttpHandler } from './handler.ts'

/** Answers a `Request` with a `Response`, for Bun, Deno, Workers and frameworks. */
export type FetchHandler = (request: Request) => Promise<Response>

/** Adapts a handler to `Request` and `Response`. */
export function fetchHandler(handler: HttpHandler): FetchHandler {
  return async (request) => {
    const { status, headers, body } = await handler.respond({
      method: request.method,
      header: (name) => request.headers.get(name),
      read: (into) => readRequest(request, into),
    })
    return new Response(body ?? null, { status, headers })
  }
}

/** Reads the body of a `Request`, and stops reading once the body is settled. */
export function readRequest(request: Request, body: IncomingBody): void {
  if (request.bodyUsed) {
    const message = 'the body was already read: pass the request on before any body parser'
    throw new ArgumentError('request', { message }, hidden(request))
  }
  if (request.body === null) return body.end()
  const reader = request.body.getReader()
  body.startTimer()
  void pump(reader, body)
  // After a failure, a read may still be pending. Cancelling ends it; its result does not matter.
  void body.bytes.then((outcome) => {
    if (typeof outcome === 'string') reader.cancel().catch(() => undefined)
  })
}

async function pump(reader: ReadableStreamDefaultReader<Uint8Array>, body: IncomingBody): Promise<void> {
  try {
    while (!body.settled) {
      const { done, value } = await reader.read()
      if (done) return body.end()
      // A custom stream may contain anything.
      if (!ArrayBuffer.isView(value)) return body.fail('incomplete_body')
      body.add(value)
    }
  } catch {
    body.fail('incomplete_body')
  }
}
