import type { Context } from 'hono'

/** The header whose value names beta features (§9). */
export const BETA_HEADER = 'service-beta'

/** Whether a request enables a beta feature. The header may name several, separated by commas. */
export function hasBeta(c: Context, beta: string): boolean {
  const names = (c.req.header(BETA_HEADER) ?? '').split(',').map((name) => name.trim())
  return names.includes(beta)
}
