import { gzipSync } from 'node:zlib'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context, MiddlewareHandler } from 'hono'
import { concerns, type FaultOf, type Faults } from '../faults.ts'

type AnswerContext = Context<{ Bindings: HttpBindings }>

/**
 * An answer in JSON that keeps its text, for {@link sendAnswers} to send as it is. Any other `Response` makes a stream of
 * it, and to read that again takes longer than all else about a small request. It lasts only where no middleware looks at
 * `c.res` before the route has answered: of that, Hono makes a new `Response`.
 */
export class JsonAnswer extends Response {
  readonly content: string

  constructor(value: unknown, status = 200) {
    super(null, { status, headers: { 'content-type': 'application/json' } })
    this.content = JSON.stringify(value)
  }
}

/** Sends JSON answers, and lets their faults strike: `malformed`, `gzip` and `truncated`. The request has taken effect by then. */
export function sendAnswers(faults: Faults): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (c, next) => {
    await next()
    const { res } = c
    if (res.headers.get('content-type')?.startsWith('application/json') !== true) return
    const fault = faults.take(['malformed', 'gzip', 'truncated'], (armed) => concerns(armed, c.req.path))
    if (fault !== undefined) replace(c, await spoilt(c, fault))
    else if (res instanceof JsonAnswer) replace(c, sent(c, res))
  }
}

function sent({ env }: AnswerContext, { status, content }: JsonAnswer): Response {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }
  env.outgoing.writeHead(status, headers).end(content)
  return RESPONSE_ALREADY_SENT
}

async function spoilt(
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

/** Hono would add the former answer's headers to the new one's, were it not taken away first. */
function replace(c: AnswerContext, answer: Response): void {
  c.res = undefined
  c.res = answer
}
