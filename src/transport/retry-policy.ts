import { isObject } from '../protocol/json.ts'
import { oneLine } from '../protocol/one-line.ts'
import type { ValidationIssue } from '../protocol/problem.ts'
import { parseRetryAfter } from '../protocol/retry-after-header.ts'
import {
  ApiError,
  AuthenticationError,
  ConflictError,
  NotFoundError,
  PaymentRequiredError,
  PermissionError,
  RateLimitError,
  RequestError,
  ServerError,
  ValidationError,
} from './errors.ts'
import type { Refusal } from './errors.ts'
import type { HeaderReader } from './exchange.ts'
import type { ResponseContext } from './response-context.ts'
import { redactJson } from './redact.ts'

/** How much of a body that the interface does not define goes into an error's message, in characters. */
export const MAX_EXCERPT = 200

/** Whether to send a failed request again: it can succeed, and it is idempotent or the service has not acted on it. */
export function mayRetry(error: unknown, idempotent: boolean): boolean {
  return error instanceof RequestError && error.retryable && (idempotent || error.taken === 'no')
}

/** The most retries without a success, and those of a new client. */
const MAX_BUDGET = 500

/** How many successes give back one retry. */
const SUCCESSES = 5

/**
 * Bounds the retries of all requests together, so that a client does not multiply its requests while the service is down: 500, and one more
 * for every five requests that succeed. Once it is used up, a request fails with the error of its first attempt, which every
 * request still has. The choice is beyond the interface document.
 */
export class RetryBudget {
  /** What is left, in successes: whole numbers, which do not drift. */
  #left = MAX_BUDGET * SUCCESSES

  /** Takes one retry. Returns false, and takes nothing, if none is left. */
  take(): boolean {
    if (this.#left < SUCCESSES) return false
    this.#left -= SUCCESSES
    return true
  }

  /** A request has succeeded. */
  succeeded(): void {
    this.#left = Math.min(MAX_BUDGET * SUCCESSES, this.#left + 1)
  }
}

/** Whether a request with this status may succeed later. The choice is beyond the interface document. */
function isRetryableStatus(status: number): boolean {
  if (status === 408 || status === 429) return true
  // 501 and 505 are permanent; every other 5xx is transient.
  return status >= 500 && status !== 501 && status !== 505
}

/** Whether the service may have acted on a request with this status. `fromService` is false if a proxy may have answered. */
function takenAt(status: number, fromService: boolean): 'no' | 'maybe' {
  // A 408 may come while the work is in progress. The service sends 503 before any work begins, but a proxy also sends it when
  // the service fails midway.
  if (status === 503) return fromService ? 'no' : 'maybe'
  return status >= 400 && status < 500 && status !== 408 ? 'no' : 'maybe'
}

/** The error for a response other than 2xx. `text` is its body. */
export function apiErrorOf(
  { request, now, redact }: Pick<ResponseContext, 'request' | 'now' | 'redact'>,
  status: number,
  header: HeaderReader,
  text: string,
): ApiError {
  const body = readErrorBody(text, redact)
  const retryAfter = parseRetryAfter(header('retry-after'), header('date'), now())
  const refusal: Refusal = {
    status,
    ...body,
    retryAfter,
    retryable: isRetryableStatus(status),
    taken: takenAt(status, body.problem?.ref_id !== undefined),
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

/** Reads an error body: an ErrorResponse (§2.5), a `detail` list (§4.3), or the page of a proxy. */
function readErrorBody(
  text: string,
  redact: ResponseContext['redact'],
): Pick<Refusal, 'problem' | 'issues' | 'excerpt'> {
  const excerpt = oneLine(redact(text), MAX_EXCERPT)
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
  return { excerpt: typeof detail === 'string' ? oneLine(detail, MAX_EXCERPT) : excerpt }
}

function isIssue(value: unknown): value is ValidationIssue {
  return isObject(value) && Array.isArray(value['loc']) && typeof value['msg'] === 'string'
}
