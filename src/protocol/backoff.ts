import { isObject } from './json.ts'

/** How the delay between attempts grows. */
export interface Backoff {
  /** Upper bound of the first delay, in ms; with 0, attempts follow each other at once. Default 500. */
  readonly initialDelay?: number
  /** Upper bound of every delay, in ms. Default 30,000. */
  readonly maxDelay?: number
}

/** Default of {@link Backoff.initialDelay}, in ms. */
export const INITIAL_DELAY = 500
/** Default of {@link Backoff.maxDelay}, in ms. */
export const MAX_DELAY = 30_000

/**
 * The smallest delay, as a part of its bound. Full jitter allows a delay of 0, and a `random` that returns 0 again and again
 * would make a hot loop. It is small, so that hardly any clients use it at the same time.
 */
const LEAST_JITTER = 0.01

/**
 * Exponential backoff with full jitter, in ms: a random delay below a bound that doubles with each failure, so that clients
 * that failed together do not retry together. At least a hundredth of the bound. `attempt` counts from 0.
 */
export function backoffDelay(
  attempt: number,
  backoff: Backoff = {},
  random: () => number = Math.random,
): number {
  const { initialDelay = INITIAL_DELAY, maxDelay = MAX_DELAY } = backoff
  const bound = Math.min(maxDelay, initialDelay * 2 ** Math.min(attempt, 30))
  return bound * Math.max(LEAST_JITTER, random())
}

/**
 * How long to wait after a failure before the next attempt, in ms: a {@link backoffDelay}, and at least the error's `retryAfter`. A server
 * can lengthen the wait, but not remove it: a server that answers with `Retry-After: 0` would be requested in a hot loop.
 */
export function retryDelay(
  error: unknown,
  attempt: number,
  backoff: Backoff = {},
  random: () => number = Math.random,
): number {
  return Math.max(retryAfterOf(error) ?? 0, backoffDelay(attempt, backoff, random))
}

/** Whether and when a failed request can be retried. The library's own errors have these fields, and any error may have them. */
export interface Retryable {
  /** Whether the same request may succeed later. */
  readonly retryable: boolean
  /** How long to wait before a retry, in ms, if the service gave it. */
  readonly retryAfter?: number | undefined
}

/** Whether the error is retryable: the same request may succeed later. */
export function isRetryable(error: unknown): error is Retryable {
  return retryableOf(error) === true
}

/** The `retryAfter` of the error, in ms; undefined if it is absent or not a valid delay. */
function retryAfterOf(error: unknown): number | undefined {
  return isObject(error) ? usableDelay(error['retryAfter']) : undefined
}

/** The value if it is a valid delay, else undefined. */
export function usableDelay(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}

/** The error's `retryable`, undefined if it has none. */
export function retryableOf(error: unknown): unknown {
  return isObject(error) ? error['retryable'] : undefined
}
