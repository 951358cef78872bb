/** The state of a source. */
export interface SourceState {
  /** Without the query, which may have a token. */
  readonly url: string
  /** Number of its pages, feeds and sitemaps that are refreshed, with those that fail. */
  readonly urls: number
  /** When its URL was requested last, in ISO 8601; null before the first response. */
  readonly refreshed_at: string | null
  /** Why the last request of its URL failed; null if it did not. */
  readonly error: string | null
}
