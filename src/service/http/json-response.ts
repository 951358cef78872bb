import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context, MiddlewareHandler } from 'hono'

export type ResponseContext = Context<{ Bindings: HttpBindings }>

/**
 * A JSON response that keeps its text for {@link sendResponses}. Reading it back from the stream of an ordinary `Response`
 * takes longer than the rest of a small request. Middleware must not read `c.res` before the route has responded, or Hono
 * replaces it by a new `Response`.
 */
export class JsonResponse extends Response {
  readonly content: string

  constructor(value: unknown, status = 200) {
    super(null, { status, headers: { 'content-type': 'application/json' } })
    this.content = JSON.stringify(value)
  }
}

/** Sends every {@link JsonResponse} itself. */
export function sendResponses(): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (c, next) => {
    await next()
    if (c.res instanceof JsonResponse) replaceResponse(c, sent(c, c.res))
  }
}

function sent({ env }: ResponseContext, { status, content }: JsonResponse): Response {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }
  env.outgoing.writeHead(status, headers).end(content)
  return RESPONSE_ALREADY_SENT
}

/** Replaces the response. The old one is removed first, since Hono would merge its headers into the new one. */
export function replaceResponse(c: ResponseContext, answer: Response): void {
  c.res = undefined
  c.res = answer
}
