/** Why an address was not fetched. */
export type WebErrorKind =
  | 'blocked_address'
  | 'fetch_error'
  | 'invalid_url'
  | 'timeout'
  | 'too_large'
  | 'too_many_redirects'
  | 'unsupported_content_type'

/** A request to an outside address that got no usable response. The message has no internal address. */
export class WebError extends Error {
  readonly kind: WebErrorKind
  /** The status of the response, if there was one. */
  readonly status: number | undefined

  constructor(kind: WebErrorKind, message: string, { status, cause }: WebErrorDetails = {}) {
    super(message, { cause })
    this.name = 'WebError'
    this.kind = kind
    this.status = status
  }
}

interface WebErrorDetails {
  readonly status?: number | undefined
  readonly cause?: unknown
}
