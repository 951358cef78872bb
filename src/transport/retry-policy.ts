import { isObject } from '../protocol/event.ts'
import type { ValidationIssue } from '../protocol/problem.ts'
import {
  ApiError,
  AuthenticationError,
  ConflictError,
  NotFoundError,
  PaymentRequiredError,
  PermissionError,
  RateLimitError,
  RivuletError,
  ServerError,
  ValidationError,
} from './errors.ts'
import type { Refusal } from './errors.ts'
import type { HeaderReader } from './exchange.ts'
import type { Reading } from './reading.ts'
import { redactJson } from './redact.ts'

/** The longest wait that `Retry-After` and `retry:` can ask for, in ms: one hour, the longest window of the service's quotas. */
export const MAX_RETRY_AFTER = 3_600_000

/** How much of a body that is none of the interface's goes into an error's message, in characters. */
const MAX_EXCERPT = 200

/** Whether a failed request may be sent again: it can succeed, and twice does no harm or it was not taken the first time. */
export function maySendAgain(error: unknown, idempotent: boolean): boolean {
  return error instanceof RivuletError && error.retryable && (idempotent || error.taken === 'no')
}

/** Whether a request answered with this status may succeed later. Which ones is beyond the interface document. */
function isRetryableStatus(status: number): boolean {
  if (status === 408 || status === 429) return true
  // 501 and 505 say that the service cannot do this at all; every other 5xx is a state that passes.
  return status >= 500 && status !== 501 && status !== 505
}

/** Whether the service can have acted on a request that it answered with this status. `own` = the answer is its own word. */
function takenAt(status: number, own: boolean): 'no' | 'maybe' {
  // 408 comes when a deadline passed, perhaps with the work under way. A service says 503 before any work begins, but a
  // proxy says it as well when the service behind it went away in the middle.
  if (status === 503) return own ? 'no' : 'maybe'
  return status >= 400 && status < 500 && status !== 408 ? 'no' : 'maybe'
}

/** The error that an answer other than 2xx stands for. `text` is its body. */
export function refusalOf(
  { request, now, redact }: Pick<Reading, 'request' | 'now' | 'redact'>,
  status: number,
  header: HeaderReader,
  text: string,
): ApiError {
  const said = readErrorBody(text, redact)
  const retryAfter = parseRetryAfter(header('retry-after'), header('date'), now())
  const refusal: Refusal = {
    status,
    ...said,
    retryAfter,
    retryable: isRetryableStatus(status),
    taken: takenAt(status, said.problem?.ref_id !== undefined),
  }
  switch (status) {
    case 401:
      return new AuthenticationError(request, refusal)
    case 402:
      return new PaymentRequiredError(request, refusal)
    case 403:
      return new PermissionError(request, refusal)
    case 404:
      return new NotFoundError(request, refusal)
    case 409:
      return new ConflictError(request, refusal)
    case 422:
      return new ValidationError(request, refusal)
    case 429:
      return new RateLimitError(request, refusal)
    default:
      return status >= 500 ? new ServerError(request, refusal) : new ApiError(request, refusal)
  }
}

/**
 * A `Retry-After` header in ms from now, at most {@link MAX_RETRY_AFTER}; undefined where there is none that can be read.
 * A date is held against the answer's own `Date`, so that a clock that is wrong here does not matter.
 */
export function parseRetryAfter(
  value: string | undefined,
  date: string | undefined,
  now: number,
): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1_000, MAX_RETRY_AFTER)
  const until = parseHttpDate(text)
  if (until === undefined) return undefined
  return Math.min(Math.max(0, until - (parseHttpDate(date ?? '') ?? now)), MAX_RETRY_AFTER)
}

/** Any of the three forms of an HTTP date, which all begin with the day's name and are all in GMT. */
function parseHttpDate(text: string): number | undefined {
  if (!/^[A-Za-z]{3,9},? /.test(text)) return undefined
  const ms = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(ms) ? undefined : ms
}

/** What an error body says: an ErrorResponse (§2.5), a `detail` list (§4.3), or a body of somebody else. */
function readErrorBody(
  text: string,
  redact: Reading['redact'],
): Pick<Refusal, 'problem' | 'issues' | 'excerpt'> {
  const excerpt = redact(text).replaceAll(/\s+/g, ' ').trim().slice(0, MAX_EXCERPT)
  let body: unknown
  try {
    // Value by value, since the text may escape a character of the key.
    body = redactJson(JSON.parse(text), redact)
  } catch {
    // Not JSON, or nested more deeply than the stack.
    return { excerpt }
  }
  if (!isObject(body)) return { excerpt }
  const { error, detail } = body
  if (isObject(error) && typeof error['message'] === 'string') {
    const { message, ref_id, detail: more } = error
    return {
      problem: {
        message,
        ...(typeof ref_id === 'string' && { ref_id }),
        ...((isObject(more) || more === null) && { detail: more }),
      },
    }
  }
  if (Array.isArray(detail)) return { issues: detail.filter(isIssue), excerpt }
  return { excerpt: typeof detail === 'string' ? detail.slice(0, MAX_EXCERPT) : excerpt }
}

function isIssue(value: unknown): value is ValidationIssue {
  return isObject(value) && Array.isArray(value['loc']) && typeof value['msg'] === 'string'
}
