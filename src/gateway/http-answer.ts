import type { Refusal, RefusalCode } from '../protocol/live.ts'

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
