import type { HttpBindings } from '@hono/node-server'
import type { MiddlewareHandler } from 'hono'
import { MAX_RUN_CHARACTERS, MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import { problem } from './problem.ts'

/** Bytes of a request's body, at the most. */
export const MAX_BODY = 4 * 1024 * 1024
/** Bytes of what runs may say beside their inputs and specs, metadata and tool servers for instance. */
const MAX_EXTRAS = 16 * 1024 * 1024

/**
 * Bytes of a request that adds runs (§4.3), at the most: as many and as long ones as it may hold, where a character takes
 * up to three bytes, and whatever else it says of them.
 */
const MAX_RUNS_BODY = MAX_RUNS_PER_REQUEST * MAX_RUN_CHARACTERS * 3 + MAX_EXTRAS
const ADDS_RUNS = /^\/v1(beta)?\/tasks\/groups\/[^/]+\/runs$/

/** Whether a request adds runs to a group, many at once: it may hold more than any other. */
export function addsRuns(path: string): boolean {
  return ADDS_RUNS.test(path)
}

/** Reads the body of a POST, and refuses one that is longer than its path takes with a 413, without keeping it. */
export function limitBody(): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (c, next) => {
    if (c.req.method === 'POST') {
      const limit = addsRuns(c.req.path) ? MAX_RUNS_BODY : MAX_BODY
      const arrayBuffer = await readBody(c.env.incoming, limit)
      // Hono keeps promises there of what it has read itself. A `Request` with this body would be made for nothing else.
      Object.assign(c.req.bodyCache, { arrayBuffer: Promise.resolve(arrayBuffer) })
    }
    await next()
  }
}

async function readBody(incoming: HttpBindings['incoming'], limit: number): Promise<ArrayBuffer> {
  if (Number(incoming.headers['content-length'] ?? 0) > limit) throw tooLong(limit)
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    // Destroying the request would also destroy the socket that the answer goes out on.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      length += chunk.length
      if (length > limit) break
      chunks.push(chunk)
    }
  } catch {
    throw problem(400, 'The request broke off before its body was complete')
  }
  if (length > limit) throw tooLong(limit)
  const body = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    body.set(chunk, offset)
    offset += chunk.length
  }
  return body.buffer
}

function tooLong(limit: number) {
  // Node reads on and drops what still comes: closing at once could destroy this answer before it is read.
  return problem(413, `The body is longer than ${limit} bytes`)
}
