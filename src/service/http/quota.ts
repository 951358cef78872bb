import type { MiddlewareHandler } from 'hono'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { isObject } from '../../protocol/event.ts'
import { type QuotaLimit, type QuotaLimits, quotaLimits } from '../../protocol/quotas.ts'
import { type Clock, realTimeOf } from '../clock.ts'
import { problem } from './problem.ts'

/** True for the known quotas, false for none, or limits that replace the known ones of the named quotas. */
export type ServiceQuotas = boolean | QuotaLimits

/** The limit of each quota. Throws an ArgumentError for an invalid setting. */
export function serviceLimits(quotas: ServiceQuotas): QuotaLimits {
  if (quotas === false) return {}
  if (quotas === true) return quotaLimits({})
  if (!isObject(quotas)) throw new ArgumentError('quotas', 'true, false or an object', quotas)
  return quotaLimits(quotas)
}

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
