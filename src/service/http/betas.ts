import type { Context, MiddlewareHandler } from 'hono'
import { issue, unprocessable } from './validation.ts'

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

/** Refuses requests that do not enable the beta feature of their area. */
export function requireBeta(beta: string, area: string): MiddlewareHandler {
  return async (c, next) => {
    if (!hasBeta(c, beta)) {
      const header = betaHeaderOf(c)
      const message = `${area} is in beta: send the header ${header} with the value ${beta}`
      throw unprocessable([issue(['header', header], message, 'missing')])
    }
    await next()
  }
}

/** Whether a request enables a beta feature. The header may name several, separated by commas. */
export function hasBeta(c: Context, beta: string): boolean {
  const names = (c.req.header(betaHeaderOf(c)) ?? '').split(',').map((name) => name.trim())
  return names.includes(beta)
}
