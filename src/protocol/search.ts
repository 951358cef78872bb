import type { Warning } from './problem.ts'
import type { SourcePolicy } from './task.ts'

/** One page that a search found (§2.9). */
export interface SearchResult {
  readonly url: string
  readonly title?: string | null
  readonly publish_date?: string | null
  readonly excerpts: readonly string[]
}

/** Every search mode, from the fastest to the most thorough (§4.7). */
export const SEARCH_MODES = ['turbo', 'fast', 'basic', 'advanced'] as const

/** The effort of a search (§4.7). */
export type SearchMode = (typeof SEARCH_MODES)[number]

/** How old a page of a cache may be; beyond the interface document. */
export interface FetchPolicy {
  /** At least 600. */
  readonly max_age_seconds?: number
  readonly timeout_seconds?: number
  readonly disable_cache_fallback?: boolean
}

/** A resource that a request consumed, and how much of it; beyond the interface document. */
export interface Usage {
  readonly name: string
  readonly count: number
}

/** The body of `POST /v1/search` (§4.7). */
export interface SearchRequest {
  /** Keyword queries, at least one. */
  readonly search_queries: readonly string[]
  /** The purpose of the search, in natural language. */
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
    readonly fetch_policy?: FetchPolicy
  }
  /** Beyond the interface document. */
  readonly max_chars_total?: number
  /** Beyond the interface document. */
  readonly session_id?: string
  /** Beyond the interface document. */
  readonly client_model?: string
}

/** The response of `POST /v1/search`, best results first (§4.7). */
export interface SearchResponse {
  readonly results: readonly SearchResult[]
  readonly warnings?: readonly Warning[] | null
  /** Beyond the interface document. */
  readonly search_id?: string
  /** Beyond the interface document. */
  readonly session_id?: string
  /** Beyond the interface document. */
  readonly usage?: readonly Usage[] | null
}

/** The body of `POST /v1beta/search` (§4.6). Requires an objective or a query. */
export interface SearchBetaRequest {
  readonly objective?: string
  readonly search_queries?: readonly string[]
  readonly processor?: string
  readonly max_results?: number
  readonly max_chars_per_result?: number
  readonly source_policy?: SourcePolicy
}

/** The response of `POST /v1beta/search`, best results first (§4.6). */
export interface SearchBetaResponse {
  readonly search_id: string
  readonly results: readonly SearchResult[]
  /** Beyond the interface document. */
  readonly warnings?: readonly Warning[] | null
}
