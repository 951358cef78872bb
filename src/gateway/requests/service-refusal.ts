import { isObject } from '../../protocol/json.ts'
import { refusalResponse } from '../http-answer.ts'

/** The longest wait that is passed on, in ms. */
const MAX_RETRY_AFTER = 3_600_000

/**
 * The answer to a page whose request has failed at the service. It shows only the kind of the error: a page must not see a service's words,
 * a URL or a key.
 *
 * @param isWrite Whether a repeated request may have its effect twice.
 */
export function serviceRefusal(error: unknown, isWrite: boolean): Response {
  // The errors of `rivulet`'s client have these fields. Classes are not compared, since another copy of the library has its own.
  const { name, status, retryAfter, taken } = isObject(error) ? error : {}
  const wait =
    typeof retryAfter === 'number' && retryAfter >= 0 ? Math.min(retryAfter, MAX_RETRY_AFTER) : undefined
  const details = wait === undefined ? {} : { retryAfter: wait }
  if (name === 'ArgumentError') return refusalResponse('invalid', 'the request is not valid')
  if (isWrite && taken !== 'no') {
    return refusalResponse('uncertain', 'the request failed, and the service may have acted on it')
  }
  switch (status) {
    case 400:
    case 413:
    case 422:
      return refusalResponse('invalid', 'the service does not accept this request')
    case 404:
      return refusalResponse('invalid', 'the service does not know what the request names', { status: 404 })
    case 409:
      return refusalResponse('invalid', 'its state does not allow this request', { status: 409 })
    case 429:
      return refusalResponse('too_many', 'the service has too many requests', details)
    // The service refuses the gateway's key. The codes for a refused token do not fit: the page would renew its token.
    case 401:
    case 402:
    case 403:
      return refusalResponse('unavailable', 'the service refuses the requests of this gateway')
    default:
      return refusalResponse('unavailable', 'the service cannot be reached or has failed', details)
  }
}
