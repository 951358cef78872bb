import { LiveError } from 'rivulet/live'
import type { LiveErrorCode } from 'rivulet/live'
import { formats } from '../parts/format.ts'

/** The errors of requests that were refused or never sent. After any other error the service may have taken the request. */
const NOT_TAKEN = new Set<LiveErrorCode>([
  'unauthenticated',
  'expired',
  'revoked',
  'forbidden',
  'invalid',
  'too_many',
  'unavailable',
  'token',
])

/** The message if it is not known whether runs were added. */
export function addRunsFailure(error: Error): string {
  if (!(error instanceof LiveError && NOT_TAKEN.has(error.code))) {
    return `It is not known whether the runs were added: ${error.message}. Look at the number of runs before you add them again.`
  }
  const { message, retryAfter } = error
  const again = retryAfter === undefined ? '' : ` Try again in ${formats.duration(retryAfter)}.`
  return `The runs were not added: ${message}.${again}`
}
