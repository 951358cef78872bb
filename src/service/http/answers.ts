import { gzipSync } from 'node:zlib'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context, MiddlewareHandler } from 'hono'
import { concerns, type FaultOf, type Faults } from '../faults.ts'

type AnswerContext = Context<{ Bindings: HttpBindings }>

/**
 * A JSON response that keeps its text for {@link sendAnswers}. Reading it back from the stream of an ordinary `Response`
 * takes longer than the rest of a small request. Middleware must not read `c.res` before the route has responded, or Hono
 * replaces it by a new `Response`.
 */
export class JsonAnswer extends Response {
  readonly content: string

  constructor(value: unknown, status = 200) {
    super(null, { status, headers: { 'content-type': 'application/json' } })
    this.content = JSON.stringify(value)
  }
}

/** Sends JSON responses, and injects the faults `malformed`, `gzip` and `truncated` after the request has taken effect. */
export function sendAnswers(faults: Faults): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (c, next) => {
    await next()
    const { res } = c
    if (res.headers.get('content-type')?.startsWith('application/json') !== true) return
    const fault = faults.take(['malformed', 'gzip', 'truncated'], (armed) => concerns(armed, c.req.path))
    if (fault !== undefined) replace(c, await faulty(c, fault))
    else if (res instanceof JsonAnswer) replace(c, sent(c, res))
  }
}

function sent({ env }: AnswerContext, { status, content }: JsonAnswer): Response {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }
  env.outgoing.writeHead(status, headers).end(content)
  return RESPONSE_ALREADY_SENT
}

async function faulty(
  { env, res }: AnswerContext,
  { kind }: FaultOf<'malformed' | 'gzip' | 'truncated'>,
): Promise<Response> {
  const { status, headers } = res
  const body = res instanceof JsonAnswer ? Buffer.from(res.content) : Buffer.from(await res.arrayBuffer())
  const half = body.subarray(0, Math.ceil(body.length / 2))
  if (kind === 'malformed') return new Response(half, { status, headers })
  if (kind === 'gzip') {
    headers.set('content-encoding', 'gzip')
    return new Response(gzipSync(body), { status, headers })
  }
  env.outgoing.writeHead(status, { ...Object.fromEntries(headers), 'content-length': body.length })
  env.outgoing.write(half, () => env.outgoing.destroy())
  return RESPONSE_ALREADY_SENT
}

/** Removes the old response first, since Hono would merge its headers into the new one. */
function replace(c: AnswerContext, answer: Response): void {
  c.res = undefined
  c.res = answer
}
