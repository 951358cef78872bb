import type { Refusal, RefusalCode } from '../protocol/live.ts'
import { isObject } from '../protocol/json.ts'

/** The status of a refusal, by its code. */
const STATUS: Readonly<Record<RefusalCode, number>> = {
  unauthenticated: 401,
  expired: 401,
  revoked: 401,
  forbidden: 403,
  unknown_view: 404,
  invalid: 400,
  too_many: 429,
  unavailable: 503,
  uncertain: 502,
}

/** The parts of a refusal that differ from the default of its code. */
export interface RefusalDetails {
  /** Default: the status of the code. */
  readonly status?: number
  /** When to try again, in ms from now: in the body, and in whole seconds in `Retry-After`. */
  readonly retryAfter?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** The code of each response that refuses a request. */
const codes = new WeakMap<Response, RefusalCode>()

/** The code of a refusal; undefined for another response. */
export function refusalCode(response: Response): RefusalCode | undefined {
  return codes.get(response)
}

/** A response that refuses a request: `{ error: Refusal }` as JSON. */
export function refusalResponse(
  code: RefusalCode,
  message: string,
  { status = STATUS[code], retryAfter, headers = {} }: RefusalDetails = {},
): Response {
  const error: Refusal = { code, message, ...(retryAfter !== undefined && { retryAfter }) }
  const response = Response.json(
    { error },
    {
      status,
      headers: {
        ...(status === 401 && { 'www-authenticate': 'Bearer' }),
        ...(retryAfter !== undefined && { 'retry-after': String(Math.max(1, Math.ceil(retryAfter / 1000))) }),
        'cache-control': 'no-store',
        ...headers,
      },
    },
  )
  codes.set(response, code)
  return response
}

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
