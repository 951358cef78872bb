import { catchError, throwError } from 'rxjs'
import type { MonoTypeOperatorFunction } from 'rxjs'
import { RequestError } from '../../transport/errors.ts'

/**
 * A request that creates or starts something failed, but the service may have acted on it. `cause` is the request's own error.
 *
 * Not retryable: the same call may create or start it twice.
 */
export class UncertainRequestError extends RequestError {
  override readonly name: string = 'UncertainRequestError'
  override readonly code: string = 'uncertain_request'

  constructor(
    cause: RequestError,
    what = 'the service may have acted on the request; look before it is sent again',
  ) {
    const { method, path, message } = cause
    super(`${what} (${message})`, { method, path }, { cause })
  }
}

/**
 * Replaces the error of a request that the service may have acted on, so that the subscriber's own `reconnect` does not send
 * the request again.
 */
export function actedOnOnce<T>(): MonoTypeOperatorFunction<T> {
  return catchError((error: unknown) => throwError(() => onceActedOn(error)))
}

/** The error of {@link actedOnOnce} for an error of the request. */
export function onceActedOn(error: unknown): unknown {
  const isUncertain = error instanceof RequestError && error.taken === 'maybe'
  return isUncertain ? new UncertainRequestError(error) : error
}
