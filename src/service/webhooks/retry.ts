import { FIRST_WEBHOOK_RETRY, WEBHOOK_HORIZON } from '../../protocol/limits.ts'

/**
 * The time of the next attempt after a failure (§6.1): 5 s later, then 10 s, 20 s and so on, within 48 hours of the
 * webhook's creation. Undefined when no attempt is left. All times are Unix ms.
 */
export function nextAttempt(createdAt: number, failedAttempts: number, failedAt: number): number | undefined {
  const at = failedAt + FIRST_WEBHOOK_RETRY * 2 ** (failedAttempts - 1)
  return at <= createdAt + WEBHOOK_HORIZON ? at : undefined
}
