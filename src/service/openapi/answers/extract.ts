import type { ExtractError, ExtractResponse, ExtractResult } from '../../../protocol/extract.ts'
import * as s from './kinds.ts'
import { warning } from './problems.ts'
import { usage } from './search.ts'

const result = s.component(
  'ExtractResult',
  s.object<ExtractResult>(
    { url: s.url, excerpts: s.list(s.text) },
    { title: s.orNull(s.text), publish_date: s.orNull(s.text), full_content: s.orNull(s.text) },
  ),
)

const failure = s.component(
  'ExtractError',
  s.object<ExtractError>(
    { url: s.url, error_type: s.text, http_status_code: s.orNull(s.count), content: s.orNull(s.text) },
    {},
  ),
)

/** The response of `POST /v1/extract`; beyond the interface document. */
export const extractResponse = s.component(
  'ExtractResponse',
  s.object<ExtractResponse>(
    { extract_id: s.id, results: s.list(result), errors: s.list(failure) },
    {
      warnings: s.orNull(s.list(warning)),
      usage: s.orNull(s.list(usage)),
      session_id: s.text,
    },
  ),
)
