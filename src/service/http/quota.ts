import type { MiddlewareHandler } from 'hono'
import type { QuotaLimit } from '../../protocol/quotas.ts'
import { type Clock, realTimeOf } from '../clock.ts'
import { problem } from './problem.ts'

/**
 * Allows a number of requests of each key in each window of real time, and responds to others with 429 and a `Retry-After` in
 * seconds. Windows begin at multiples of their length.
 */
export function quota(clock: Clock, { requests, window }: QuotaLimit): MiddlewareHandler {
  let started = 0
  // Requests in the current window. The keys are valid ones, so there are few.
  const used = new Map<string, number>()
  return async (c, next) => {
    const now = realTimeOf(clock).now()
    const current = Math.floor(now / window)
    if (current !== started) {
      started = current
      used.clear()
    }
    const key = c.req.header('x-api-key') ?? ''
    const count = used.get(key) ?? 0
    if (count >= requests) {
      const wait = Math.ceil(((current + 1) * window - now) / 1_000)
      const message = `More than ${requests} requests in ${window / 1_000} s`
      throw problem(429, message, null, { 'retry-after': String(wait) })
    }
    used.set(key, count + 1)
    await next()
  }
}
