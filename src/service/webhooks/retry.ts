import { FIRST_WEBHOOK_RETRY, WEBHOOK_HORIZON } from '../../protocol/limits.ts'

/**
 * When a webhook is tried again after its latest attempt failed (§6.1): 5 s later, then 10 s, 20 s and so on, as long
 * as that lies within 48 hours of its creation. Undefined means that no attempt is left. All times are Unix ms.
 */
export function nextAttempt(createdAt: number, failedAttempts: number, failedAt: number): number | undefined {
  const at = failedAt + FIRST_WEBHOOK_RETRY * 2 ** (failedAttempts - 1)
  return at <= createdAt + WEBHOOK_HORIZON ? at : undefined
}
