/**
 * Why a URL of a source was not read: the status of its response; why there was none, or why it was refused; `disallowed` by its
 * robots.txt; `noindex`; `not_read`, since the service was too busy.
 */
export type SourceErrorCode =
  | `http_${number}`
  | 'blocked_address'
  | 'disallowed'
  | 'fetch_error'
  | 'invalid_url'
  | 'noindex'
  | 'not_read'
  | 'timeout'
  | 'too_large'
  | 'too_many_redirects'
  | 'unsupported_content_type'

const CODES: readonly SourceErrorCode[] = [
  'blocked_address',
  'disallowed',
  'fetch_error',
  'invalid_url',
  'noindex',
  'not_read',
  'timeout',
  'too_large',
  'too_many_redirects',
  'unsupported_content_type',
]

/** The code with this name; undefined for another name. */
export function errorCode(name: unknown): SourceErrorCode | undefined {
  const status = /^http_(\d{3})$/.exec(String(name))?.[1]
  return status === undefined ? CODES.find((code) => code === name) : `http_${Number(status)}`
}

/** The state of a source. */
export interface SourceState {
  /** URL without the query, which may have a token. */
  readonly url: string
  /** Number of its pages, feeds and sitemaps that are refreshed, with those that fail. */
  readonly urls: number
  /** Number of its pages and items in the index. */
  readonly pages: number
  /** Number of its `urls` that were not read by their last request. Pages keep their last copy. */
  readonly failing: number
  /** The latest failure of one of its `urls` that still fails; null without one. */
  readonly last_error: SourceFailure | null
  /** When its URL was requested last, in ISO 8601; null before the first response. */
  readonly refreshed_at: string | null
  /** Why the last request of its URL failed; null if it did not. */
  readonly error: string | null
}

/** A failure of a URL of a source. */
interface SourceFailure {
  /** URL without the query. */
  readonly url: string
  readonly code: SourceErrorCode
  /** When it was requested last, in ISO 8601. */
  readonly at: string
}
