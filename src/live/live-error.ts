import type { RefusalCode } from '../protocol/live.ts'

/**
 * The kind of an error between a page and its gateway: a {@link RefusalCode} of the gateway, or one of these.
 *
 * - `network`: no connection, or it was lost.
 * - `timeout`: nothing came for too long.
 * - `protocol`: the gateway sent something that does not follow this protocol, or follows another version of it.
 * - `token`: `getToken` failed, or its result is no token.
 * - `closed`: `close` was called.
 */
export type LiveErrorCode = RefusalCode | 'network' | 'timeout' | 'protocol' | 'token' | 'closed'

/** A connection, a view or a request has failed. */
export class LiveError extends Error {
  override readonly name = 'LiveError'
  readonly code: LiveErrorCode
  /** When to try again, in ms from then, if the gateway gave it. */
  readonly retryAfter: number | undefined

  constructor(
    code: LiveErrorCode,
    message: string,
    options: ErrorOptions & { readonly retryAfter?: number | undefined } = {},
  ) {
    super(message, options)
    this.code = code
    this.retryAfter = options.retryAfter
  }
}
