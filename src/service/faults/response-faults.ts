import { gzipSync } from 'node:zlib'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { MiddlewareHandler } from 'hono'
import { type ResponseContext, JsonResponse, replaceResponse } from '../http/json-response.ts'
import { concerns, type FaultOf, type Faults } from './faults.ts'

/** The faults `malformed`, `gzip` and `truncated` of JSON responses. They strike after the request has taken effect. */
export function damageResponses(faults: Faults): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (c, next) => {
    await next()
    if (c.res.headers.get('content-type')?.startsWith('application/json') !== true) return
    const fault = faults.take(['malformed', 'gzip', 'truncated'], (armed) => concerns(armed, c.req.path))
    if (fault !== undefined) replaceResponse(c, await damaged(c, fault))
  }
}

async function damaged(
  { env, res }: ResponseContext,
  { kind }: FaultOf<'malformed' | 'gzip' | 'truncated'>,
): Promise<Response> {
  const { status, headers } = res
  const body = res instanceof JsonResponse ? Buffer.from(res.content) : Buffer.from(await res.arrayBuffer())
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
