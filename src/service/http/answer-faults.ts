import { gzipSync } from 'node:zlib'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { MiddlewareHandler } from 'hono'
import { concerns, type Faults } from '../faults.ts'

/** The faults of JSON answers: `malformed`, `gzip` and `truncated`. The request has taken effect by then. */
export function spoilAnswers(faults: Faults): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (c, next) => {
    await next()
    if (c.res.headers.get('content-type')?.startsWith('application/json') !== true) return
    const fault = faults.take(['malformed', 'gzip', 'truncated'], (armed) => concerns(armed, c.req.path))
    if (fault === undefined) return

    const { status, headers } = c.res
    const body = Buffer.from(await c.res.arrayBuffer())
    const half = body.subarray(0, Math.ceil(body.length / 2))
    // Else Hono would add the former answer's headers to the new one's.
    c.res = undefined
    if (fault.kind === 'malformed') {
      c.res = new Response(half, { status, headers })
    } else if (fault.kind === 'gzip') {
      headers.set('content-encoding', 'gzip')
      c.res = new Response(gzipSync(body), { status, headers })
    } else {
      const { outgoing } = c.env
      outgoing.writeHead(status, { ...Object.fromEntries(headers), 'content-length': body.length })
      outgoing.write(half, () => outgoing.destroy())
      c.res = RESPONSE_ALREADY_SENT
    }
  }
}
