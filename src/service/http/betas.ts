import type { Context, MiddlewareHandler } from 'hono'

/** The default name of the header whose value names beta features (§9). */
export const BETA_HEADER = 'service-beta'

/** The variable of a request's context that has the name of its beta header. */
const NAME = 'betaHeader'

/** Sets the name of the beta header. */
export function readBetasFrom(header: string): MiddlewareHandler {
  return async (c, next) => {
    c.set(NAME, header)
    await next()
  }
}

/** The name of the beta header. */
export function betaHeaderOf(c: Context): string {
  const name: unknown = c.get(NAME)
  return typeof name === 'string' ? name : BETA_HEADER
}

/** Whether a request enables a beta feature. The header may name several, separated by commas. */
export function hasBeta(c: Context, beta: string): boolean {
  const names = (c.req.header(betaHeaderOf(c)) ?? '').split(',').map((name) => name.trim())
  return names.includes(beta)
}
