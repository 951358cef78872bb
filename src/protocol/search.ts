import type { Warning } from './problem.ts'
import type { SourcePolicy } from './task.ts'

/** One page that a search found (§2.9). */
export interface SearchResult {
  readonly url: string
  readonly title?: string | null
  readonly publish_date?: string | null
  readonly excerpts: readonly string[]
}

/** Every search mode, from the quickest to the most thorough (§4.7). */
export const SEARCH_MODES = ['turbo', 'fast', 'basic', 'advanced'] as const

/** How much a search may take (§4.7). */
export type SearchMode = (typeof SEARCH_MODES)[number]

/** The body of `POST /v1/search` (§4.7). */
export interface SearchRequest {
  /** Keyword queries, searched in one call. At least one. */
  readonly search_queries: readonly string[]
  /** What the search is for, in natural language. */
  readonly objective?: string
  /** Default `advanced`. */
  readonly mode?: SearchMode
  readonly advanced_settings?: {
    readonly max_results?: number
    readonly source_policy?: SourcePolicy
    /** ISO 3166-1 alpha-2. */
    readonly location?: string
    /** Beyond the interface document. */
    readonly excerpt_settings?: { readonly max_chars_per_result?: number }
    /** Beyond the interface document. */
    readonly fetch_policy?: {
      readonly max_age_seconds?: number
      readonly timeout_seconds?: number
      readonly disable_cache_fallback?: boolean
    }
  }
  /** Beyond the interface document. */
  readonly max_chars_total?: number
  /** Beyond the interface document. */
  readonly session_id?: string
  /** Beyond the interface document. */
  readonly client_model?: string
}

/** What `POST /v1/search` found, best first (§4.7). */
export interface SearchResponse {
  readonly results: readonly SearchResult[]
  readonly warnings?: readonly Warning[] | null
  /** Beyond the interface document. */
  readonly search_id?: string
  /** Beyond the interface document. */
  readonly session_id?: string
  /** Beyond the interface document. */
  readonly usage?: readonly { readonly name: string; readonly count: number }[] | null
}

/** The body of `POST /v1beta/search` (§4.6). An objective or a query must be there. */
export interface SearchBetaRequest {
  readonly objective?: string
  readonly search_queries?: readonly string[]
  readonly processor?: string
  readonly max_results?: number
  readonly max_chars_per_result?: number
  readonly source_policy?: SourcePolicy
}

/** What `POST /v1beta/search` found, best first (§4.6). */
export interface SearchBetaResponse {
  readonly search_id: string
  readonly results: readonly SearchResult[]
}
