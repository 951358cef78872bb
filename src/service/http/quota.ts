import type { MiddlewareHandler } from 'hono'
import { type Clock, realTimeOf } from '../clock.ts'
import { problem } from './problem.ts'

const MINUTE = 60_000

/** Rate limits of POSTs that create something, per minute; the paths of an entry share its limit. Beyond the interface document. */
export const QUOTAS = [
  { limit: 600, paths: ['/v1/search', '/v1beta/search'] },
  { limit: 600, paths: ['/v1/extract'] },
  {
    limit: 2_000,
    paths: [
      '/v1/tasks/runs',
      '/v1/tasks/groups/:taskgroup_id/runs',
      '/v1beta/tasks/groups/:taskgroup_id/runs',
    ],
  },
  { limit: 300, paths: ['/v1/monitors'] },
] as const

/** Allows `limit` requests in each minute of real time, and responds to others with 429 and a `Retry-After` in seconds. */
export function quota(clock: Clock, limit: number): MiddlewareHandler {
  let minute = 0
  let used = 0
  return async (_, next) => {
    const now = realTimeOf(clock).now()
    const current = Math.floor(now / MINUTE)
    if (current !== minute) {
      minute = current
      used = 0
    }
    if (used >= limit) {
      const wait = Math.ceil(((current + 1) * MINUTE - now) / 1_000)
      throw problem(429, `More than ${limit} requests in a minute`, null, { 'retry-after': String(wait) })
    }
    used += 1
    await next()
  }
}
