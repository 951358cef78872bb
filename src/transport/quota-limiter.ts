import type { SchedulerLike } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkInteger, checkOptions } from '../protocol/check.ts'
import { QUOTAS } from '../protocol/quotas.ts'
import type { Quota, QuotaLimit } from '../protocol/quotas.ts'
import { QuotaQueue } from './quota-queue.ts'
import { MAX_RETRY_AFTER } from './retry-policy.ts'

/** Requests of a quota have begun to wait. */
export interface QuotaWait {
  readonly quota: Quota
  /** How long the first of them waits, in ms. */
  readonly delay: number
}

/** Limits of quotas, in place of the known ones; false for no limits. */
export type QuotaSettings = false | Readonly<Partial<Record<Quota, QuotaLimit>>>

/** Returns the queue of a quota; undefined where there is no limit. */
export type QuotaLimiter = (quota: Quota | undefined) => QuotaQueue | undefined

/** Creates the queues of a transport. Throws an ArgumentError for an invalid limit. */
export function createQuotaLimiter(
  settings: QuotaSettings = {},
  scheduler: SchedulerLike,
  onWait: (wait: QuotaWait) => void,
): QuotaLimiter {
  if (settings === false) return () => undefined
  const limits = readLimits(settings)
  const queues = new Map<Quota, QuotaQueue>()
  return (quota) => {
    if (quota === undefined) return undefined
    const known = queues.get(quota)
    if (known !== undefined) return known
    const queue = new QuotaQueue(limits[quota], scheduler, (delay) => onWait({ quota, delay }))
    queues.set(quota, queue)
    return queue
  }
}

function readLimits(settings: Exclude<QuotaSettings, false>): Readonly<Record<Quota, QuotaLimit>> {
  if (typeof settings !== 'object' || settings === null)
    throw new ArgumentError('quotas', 'an object, or false for no limits', settings)
  checkOptions('quotas', settings, Object.keys(QUOTAS))
  const given = Object.entries(settings).filter(([, limit]) => limit !== undefined)
  for (const [name, limit] of given) {
    if (typeof limit !== 'object' || limit === null)
      throw new ArgumentError(`quotas.${name}`, 'an object with requests and window', limit)
    checkOptions(`quotas.${name}`, limit, ['requests', 'window'])
    checkInteger(`quotas.${name}.requests`, limit.requests, 1)
    checkInteger(`quotas.${name}.window`, limit.window, 1, MAX_RETRY_AFTER)
  }
  return { ...QUOTAS, ...Object.fromEntries(given) }
}
