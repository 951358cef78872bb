import type { IncomingBody } from './body-intake.ts'
import type { HttpHandler } from './handler.ts'

const ADAPTS = Symbol('adapts')

/** Answers a `Request` with a `Response`, for Bun, Deno, Workers and frameworks. */
export interface FetchHandler {
  (request: Request): Promise<Response>
  /** Set by {@link fetchHandler}: the handler that it adapted, and the resulting function. */
  readonly [ADAPTS]?: { readonly handler: HttpHandler; readonly to: FetchHandler }
}

/** Adapts a handler to `Request` and `Response`. */
export function fetchHandler(handler: HttpHandler): FetchHandler {
  const to: FetchHandler = async (request) => {
    const { status, headers, body } = await handler({
      method: request.method,
      header: (name) => request.headers.get(name),
      read: (into) => readRequest(request, into),
    })
    return new Response(body ?? null, { status, headers })
  }
  return Object.assign(to, { [ADAPTS]: { handler, to } })
}

/**
 * The inverse of {@link fetchHandler}: the handler that it adapted; undefined for any other function. So another adapter can
 * call the handler directly, without a `Request` and a `Response`.
 */
export function adaptedHandler(handle: FetchHandler): HttpHandler | undefined {
  const adapts = handle[ADAPTS]
  // A wrapper may have copied the properties of the function that it wraps. Then the wrapper itself must be called.
  return adapts?.to === handle ? adapts.handler : undefined
}

/** Reads the body of a `Request`, and stops reading once the body is settled. */
function readRequest(request: Request, body: IncomingBody): void {
  if (request.bodyUsed) {
    throw new TypeError('the body was already read: pass the request on before any body parser')
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
