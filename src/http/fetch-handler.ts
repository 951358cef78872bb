import type { IncomingBody } from './body-intake.ts'
import type { HttpHandler } from './handler.ts'

const ADAPTS = Symbol('adapts')

/** Answers a `Request` with a `Response`, as Bun, Deno, Workers and frameworks mount it. */
export interface FetchHandler {
  (request: Request): Promise<Response>
  /** Set by {@link fetchHandler}: which handler it adapted, and to which function. */
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
 * The inverse of {@link fetchHandler}: the handler that it adapted, undefined for any other function. With it, another
 * adapter can call the handler without a `Request` and a `Response` in between.
 */
export function adaptedHandler(handle: FetchHandler): HttpHandler | undefined {
  const adapts = handle[ADAPTS]
  // A wrapper may have copied the properties of the function that it wraps, and must be called itself.
  return adapts?.to === handle ? adapts.handler : undefined
}

/** Reads the body of a `Request`, and stops reading once the body is settled. */
function readRequest(request: Request, body: IncomingBody): void {
  if (request.bodyUsed) {
    throw new TypeError('the body was read before: hand the request over ahead of whatever parses bodies')
  }
  if (request.body === null) return body.end()
  const reader = request.body.getReader()
  body.startTimer()
  void pump(reader, body)
  // A sender that pauses leaves a read pending, which a failure has to end. What cancelling says is of no interest then.
  void body.bytes.then((outcome) => {
    if (typeof outcome === 'string') reader.cancel().catch(() => undefined)
  })
}

async function pump(reader: ReadableStreamDefaultReader<Uint8Array>, body: IncomingBody): Promise<void> {
  try {
    while (!body.settled) {
      const { done, value } = await reader.read()
      if (done) return body.end()
      // A stream of the user's own may hold anything.
      if (!ArrayBuffer.isView(value)) return body.fail('incomplete_body')
      body.add(value)
    }
  } catch {
    body.fail('incomplete_body')
  }
}
