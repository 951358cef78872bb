/** How the wait between attempts grows. */
export interface Backoff {
  /** Upper bound of the first wait, in ms. Default 500. */
  readonly initialDelay?: number
  /** Upper bound of every wait, in ms. Default 30,000. */
  readonly maxDelay?: number
}

/** Default of {@link Backoff.initialDelay}, in ms. */
export const INITIAL_DELAY = 500
/** Default of {@link Backoff.maxDelay}, in ms. */
export const MAX_DELAY = 30_000

/**
 * Full jitter: anything from nothing to a bound that doubles with each failure, so that clients which failed
 * together do not come back together. `attempt` counts from 0.
 */
export function backoffDelay(
  attempt: number,
  backoff: Backoff = {},
  random: () => number = Math.random,
): number {
  const { initialDelay = INITIAL_DELAY, maxDelay = MAX_DELAY } = backoff
  return random() * Math.min(maxDelay, initialDelay * 2 ** Math.min(attempt, 30))
}

/** What an error says of trying again: the library's own errors carry it, and any error may. */
export interface Retryable {
  /** Whether the same request may succeed later. */
  readonly retryable: boolean
  /** How long the service asks to wait, in ms. */
  readonly retryAfter?: number | undefined
}

/** Whether an error says that the same request may succeed later. */
export function isRetryable(error: unknown): error is Retryable {
  return typeof error === 'object' && error !== null && 'retryable' in error && error.retryable === true
}
