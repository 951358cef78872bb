import { bodyText } from '../protocol/body-text.ts'
import { isObject } from '../protocol/json.ts'
import type { RefusalCode } from '../protocol/live.ts'
import { parseRetryAfter } from '../protocol/retry-after-header.ts'
import type { Environment } from './environment.ts'
import { LiveError } from './live-error.ts'
import { cutText } from '../protocol/cut-text.ts'

/** The code of a refusal whose body has none, by its status. */
const BY_STATUS: Readonly<Record<number, RefusalCode>> = {
  401: 'unauthenticated',
  403: 'forbidden',
  429: 'too_many',
}

/** The longest error, in characters. */
const MAX_ERROR = 65_536

/** The longest wait that a gateway may ask for, in ms. */
const MAX_RETRY_AFTER = 600_000

/**
 * The error of a response that is not ok, from its body `{ error: Refusal }` and its `Retry-After`.
 *
 * @param failed The code of a failed server whose body does not say it, such as an error page of a proxy.
 */
export async function refusalOf(
  response: Response,
  environment: Environment,
  signal: AbortSignal,
  failed: RefusalCode = 'unavailable',
): Promise<LiveError> {
  const body = await jsonOf(response, MAX_ERROR, signal).catch(() => undefined)
  const { status, headers } = response
  const fallback = BY_STATUS[status] ?? (status < 500 ? 'invalid' : failed)
  const wait = parseRetryAfter(headers.get('retry-after'), headers.get('date'), environment.now())
  return errorOf(isObject(body) ? body['error'] : undefined, fallback, `HTTP ${status}`, wait)
}

/** The body of a response. Rejects if it is no JSON, or longer than `max` characters: the rest of it is not read. */
export async function jsonOf({ body }: Response, max: number, signal: AbortSignal): Promise<unknown> {
  let text = ''
  for await (const part of bodyText(body, signal)) {
    text += part
    if (text.length > max) throw new LiveError('protocol', 'The answer is too long')
  }
  return JSON.parse(text)
}

/** The error of a `Refusal`, which a gateway has sent. */
export function errorOf(refusal: unknown, fallback: RefusalCode, reason: string, wait?: number): LiveError {
  const { code, message, retryAfter = wait } = isObject(refusal) ? refusal : {}
  return new LiveError(
    isCode(code) ? code : fallback,
    typeof message === 'string' ? cutText(message, 1_000) : `Refused: ${reason}`,
    { retryAfter: bounded(retryAfter) },
  )
}

function bounded(wait: unknown): number | undefined {
  return typeof wait === 'number' && wait >= 0 ? Math.min(wait, MAX_RETRY_AFTER) : undefined
}

/** A later gateway may have other codes. */
function isCode(code: unknown): code is RefusalCode {
  return typeof code === 'string' && /^\w{1,64}$/.test(code)
}
