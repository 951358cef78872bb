import type { ExtractRequest } from '../extract.ts'
import * as s from './kinds.ts'
import { fetchPolicy } from './search.ts'

const count = s.integer(1)
const length = s.options<{ readonly max_chars_per_result?: number }>({ max_chars_per_result: count })

/** The body of `POST /v1/extract`; beyond the interface document. */
export const extractRequest = s.object<ExtractRequest>(
  { urls: s.list(s.documentUrl, 'urls', 1) },
  {
    objective: s.anyText('query'),
    search_queries: s.list(s.query, 'queries'),
    max_chars_total: count,
    session_id: s.text('name'),
    client_model: s.anyText('name'),
    advanced_settings: s.options({
      fetch_policy: fetchPolicy,
      excerpt_settings: length,
      full_content: s.either(s.flag, length),
    }),
  },
)
