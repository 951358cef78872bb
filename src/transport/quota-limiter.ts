import type { SchedulerLike } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { quotaLimits } from '../protocol/quotas.ts'
import type { Quota, QuotaLimits } from '../protocol/quotas.ts'
import { QuotaQueue } from './quota-queue.ts'

/** Requests of a quota have begun to wait. */
export interface QuotaWait {
  readonly quota: Quota
  /** How long the first of them waits, in ms. */
  readonly delay: number
}

/** Limits of quotas, which replace the known ones; false for no limits. */
export type QuotaSettings = false | QuotaLimits

/** Returns the queue of a quota; undefined if there is no limit. */
export type QuotaLimiter = (quota: Quota | undefined) => QuotaQueue | undefined

/** Creates the queues of a transport. Throws an ArgumentError for an invalid limit. */
export function createQuotaLimiter(
  settings: QuotaSettings = {},
  scheduler: SchedulerLike,
  onWait: (wait: QuotaWait) => void,
): QuotaLimiter {
  if (settings === false) return () => undefined
  if (typeof settings !== 'object' || settings === null)
    throw new ArgumentError('quotas', 'an object, or false for no limits', settings)
  const limits = quotaLimits(settings)
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
