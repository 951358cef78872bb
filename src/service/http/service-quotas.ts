import { ArgumentError } from '../../protocol/argument-error.ts'
import { isObject } from '../../protocol/json.ts'
import { type QuotaLimits, quotaLimits } from '../../protocol/quotas.ts'

/** True for the known quotas, false for none, or limits that replace the known ones of the named quotas. */
export type ServiceQuotas = boolean | QuotaLimits

/** The limit of each quota. Throws an ArgumentError for an invalid setting. */
export function serviceLimits(quotas: ServiceQuotas): QuotaLimits {
  if (quotas === false) return {}
  if (quotas === true) return quotaLimits({})
  if (!isObject(quotas)) throw new ArgumentError('quotas', 'true, false or an object', quotas)
  return quotaLimits(quotas)
}
