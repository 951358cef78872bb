import { SEARCH_MODES } from '../search.ts'
import type { FetchPolicy, SearchBetaRequest, SearchRequest } from '../search.ts'
import type { SourcePolicy } from '../task.ts'
import * as s from './kinds.ts'

const count = s.integer(1)

/** Which pages may be used (§2.8). */
export const sourcePolicy = s.options<SourcePolicy>({
  include_domains: s.list(s.domain, 'domains'),
  exclude_domains: s.list(s.domain, 'domains'),
  after_date: s.date,
})

/** How old a page of a cache may be; beyond the interface document. */
export const fetchPolicy = s.options<FetchPolicy>({
  max_age_seconds: s.integer(600),
  timeout_seconds: s.positive,
  disable_cache_fallback: s.flag,
})

/** The body of `POST /v1/search` (§4.7). */
export const searchRequest = s.object<SearchRequest>(
  { search_queries: s.list(s.query, 'queries', 1) },
  {
    objective: s.anyText('query'),
    mode: s.oneOf(SEARCH_MODES),
    advanced_settings: s.options({
      max_results: count,
      source_policy: sourcePolicy,
      location: s.country,
      excerpt_settings: s.options({ max_chars_per_result: count }),
      fetch_policy: fetchPolicy,
    }),
    max_chars_total: count,
    session_id: s.text('name'),
    client_model: s.anyText('name'),
  },
)

/** The body of `POST /v1beta/search` (§4.6). */
export const searchBetaRequest = s.options<SearchBetaRequest>(
  {
    objective: s.anyText('query'),
    search_queries: s.list(s.query, 'queries'),
    processor: s.anyText('name'),
    max_results: count,
    max_chars_per_result: count,
    source_policy: sourcePolicy,
  },
  { names: ['objective', 'search_queries'], expected: 'a query or an objective' },
)
