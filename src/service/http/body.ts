import type { HttpBindings } from '@hono/node-server'
import type { MiddlewareHandler } from 'hono'
import { problem } from './problem.ts'

/** Bytes of a request's body, at the most. */
export const MAX_BODY = 16 * 1024 * 1024

/** Reads the body of a POST, and refuses one that is longer than {@link MAX_BODY} with a 413, without keeping it. */
export function limitBody(): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (c, next) => {
    if (c.req.method === 'POST') {
      const body = await readBody(c.env.incoming)
      c.req.raw = new Request(c.req.url, { method: 'POST', headers: c.req.raw.headers, body })
    }
    await next()
  }
}

async function readBody(incoming: HttpBindings['incoming']): Promise<ArrayBuffer> {
  if (Number(incoming.headers['content-length'] ?? 0) > MAX_BODY) throw tooLong()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    // Destroying the request would also destroy the socket that the answer goes out on.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      length += chunk.length
      if (length > MAX_BODY) break
      chunks.push(chunk)
    }
  } catch {
    throw problem(400, 'The request broke off before its body was complete')
  }
  if (length > MAX_BODY) throw tooLong()
  const body = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    body.set(chunk, offset)
    offset += chunk.length
  }
  return body.buffer
}

function tooLong() {
  // Node reads on and drops what still comes: closing at once could destroy this answer before it is read.
  return problem(413, `The body is longer than ${MAX_BODY} bytes`)
}
