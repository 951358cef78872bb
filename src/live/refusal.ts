import type { RefusalCode } from '../protocol/live.ts'
import type { Environment } from './environment.ts'
import { isRecord } from './is-record.ts'
import { LiveError } from './live-error.ts'

/** What a status means where the body does not say it. */
const BY_STATUS: Readonly<Record<number, RefusalCode>> = {
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'unknown_view',
  429: 'too_many',
}

/** The longest wait that a gateway may ask for, in ms. */
const MAX_RETRY_AFTER = 600_000

/** The error of a response that is not ok, from its body `{ error: Refusal }` and its `Retry-After`. */
export async function refusalOf(response: Response, environment: Environment): Promise<LiveError> {
  const body: unknown = await response.json().catch(() => undefined)
  const { status, headers } = response
  const fallback = BY_STATUS[status] ?? (status < 500 ? 'invalid' : 'unavailable')
  const error = errorOf(isRecord(body) ? body['error'] : undefined, fallback, `HTTP ${status}`)
  if (error.retryAfter !== undefined) return error
  const header = headers.get('retry-after')
  if (header === null) return error
  const wait = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - environment.now()
  return new LiveError(error.code, error.message, { retryAfter: bounded(wait) })
}

/** The error of a `Refusal`, which a gateway has sent. */
export function errorOf(refusal: unknown, fallback: RefusalCode, reason: string): LiveError {
  const { code, message, retryAfter } = isRecord(refusal) ? refusal : {}
  return new LiveError(
    isCode(code) ? code : fallback,
    typeof message === 'string' ? message.slice(0, 1_000) : `The gateway refused: ${reason}`,
    { retryAfter: bounded(retryAfter) },
  )
}

function bounded(wait: unknown): number | undefined {
  return typeof wait === 'number' && wait >= 0 ? Math.min(wait, MAX_RETRY_AFTER) : undefined
}

const CODES: Readonly<Record<RefusalCode, true>> = {
  unauthenticated: true,
  expired: true,
  revoked: true,
  forbidden: true,
  unknown_view: true,
  invalid: true,
  too_many: true,
  unavailable: true,
  uncertain: true,
}

function isCode(code: unknown): code is RefusalCode {
  return typeof code === 'string' && Object.hasOwn(CODES, code)
}
