import type { RefusalCode } from '../protocol/live.ts'

/**
 * Why a page and its gateway have failed: the {@link RefusalCode} of the gateway, or one of these.
 *
 * - `network`: no connection, or it was lost.
 * - `timeout`: nothing came for too long.
 * - `protocol`: the gateway sent something that does not follow this protocol, or follows another version of it.
 * - `token`: `getToken` failed, or its result is no token.
 * - `closed`: `close` was called.
 */
export type LiveErrorReason = RefusalCode | 'network' | 'timeout' | 'protocol' | 'token' | 'closed'

/**
 * A connection, a view or a request has failed. It has no base class in common with the other errors of the package, so that a page loads
 * none of them; `name` and `code` are as those have them.
 */
export class LiveError extends Error {
  override readonly name = 'LiveError'
  readonly code = 'live'
  readonly reason: LiveErrorReason
  /** When to try again, in ms from then, if the gateway gave it. */
  readonly retryAfter: number | undefined

  constructor(
    reason: LiveErrorReason,
    message: string,
    options: ErrorOptions & { readonly retryAfter?: number | undefined } = {},
  ) {
    super(message, options)
    this.reason = reason
    this.retryAfter = options.retryAfter
  }
}
