import { createHash, timingSafeEqual } from 'node:crypto'
import type { MiddlewareHandler } from 'hono'
import { problem } from './problem.ts'

/** Accepts requests with one of the keys in `x-api-key` (§5). */
export function authenticate(keys: readonly string[]): MiddlewareHandler {
  // A comparison in constant time requires equal lengths, which digests have.
  const accepted = keys.map(digest)
  return async (c, next) => {
    const given = c.req.header('x-api-key')
    if (given === undefined || !matches(accepted, digest(given))) {
      throw problem(401, 'The API key is invalid or missing: send it in the x-api-key header')
    }
    await next()
  }
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/** Compares every key, also after a match, so that the time reveals nothing. */
function matches(accepted: readonly Buffer[], given: Buffer): boolean {
  return accepted.reduce((found, key) => timingSafeEqual(key, given) || found, false)
}
