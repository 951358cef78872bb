import type { Warning } from './problem.ts'
import type { FetchPolicy, Usage } from './search.ts'

/** The body of `POST /v1/extract`; beyond the interface document. */
export interface ExtractRequest {
  /** 1 to 20 addresses. */
  readonly urls: readonly string[]
  /** The purpose of the excerpts, in natural language. */
  readonly objective?: string
  readonly search_queries?: readonly string[]
  /** The maximum number of characters of all results together. */
  readonly max_chars_total?: number
  readonly session_id?: string
  readonly client_model?: string
  readonly advanced_settings?: {
    readonly fetch_policy?: FetchPolicy
    readonly excerpt_settings?: { readonly max_chars_per_result?: number }
    /** Whether results have the whole page as Markdown. Default false. */
    readonly full_content?: boolean | { readonly max_chars_per_result?: number }
  }
}

/** The content extracted from one page; beyond the interface document. */
export interface ExtractResult {
  readonly url: string
  readonly title?: string | null
  readonly publish_date?: string | null
  readonly excerpts: readonly string[]
  /** The whole page as Markdown, if it was requested. */
  readonly full_content?: string | null
}

/** Why nothing was extracted from a URL; beyond the interface document. */
export interface ExtractError {
  readonly url: string
  /** The kind of failure, such as `http_error`. A service may add kinds. */
  readonly error_type: string
  /** The status with which the page answered; null if it did not answer. */
  readonly http_status_code: number | null
  /** The body with which the page answered, or a description of the failure. */
  readonly content: string | null
}

/** The response of `POST /v1/extract`: each URL is in `results` or in `errors`; beyond the interface document. */
export interface ExtractResponse {
  readonly extract_id: string
  readonly results: readonly ExtractResult[]
  readonly errors: readonly ExtractError[]
  readonly warnings?: readonly Warning[] | null
  readonly usage?: readonly Usage[] | null
  readonly session_id?: string
}
