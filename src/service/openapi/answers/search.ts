import type { SearchBetaResponse, SearchResponse, SearchResult, Usage } from '../../../protocol/search.ts'
import * as s from './kinds.ts'
import { warning } from './problems.ts'

const result = s.component(
  'SearchResult',
  s.object<SearchResult>(
    { url: s.url, excerpts: s.list(s.text) },
    { title: s.orNull(s.text), publish_date: s.orNull(s.text) },
  ),
)

/** A resource that a request consumed, and how much of it; beyond the interface document. */
export const usage = s.component('Usage', s.object<Usage>({ name: s.text, count: s.count }, {}))

/** The response of `POST /v1/search` (§4.7). */
export const searchResponse = s.component(
  'SearchResponse',
  s.object<SearchResponse>(
    { results: s.list(result) },
    {
      warnings: s.orNull(s.list(warning)),
      search_id: s.id,
      session_id: s.text,
      usage: s.orNull(s.list(usage)),
    },
  ),
)

/** The response of `POST /v1beta/search` (§4.6). */
export const searchBetaResponse = s.component(
  'SearchBetaResponse',
  s.object<SearchBetaResponse>(
    { search_id: s.id, results: s.list(result) },
    { warnings: s.orNull(s.list(warning)) },
  ),
)
