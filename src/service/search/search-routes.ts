import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { searchBetaRequest, searchRequest } from '../../protocol/requests/search.ts'
import type { SearchBetaResponse, SearchMode, SearchRequest, SearchResponse } from '../../protocol/search.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { JsonResponse } from '../http/json-response.ts'
import { ignored, ignoredFields } from '../http/parameter-warnings.ts'
import { bodySchema } from '../http/request-schema.ts'
import { readJson, readJsonAndUnknown, unprocessable } from '../http/validation.ts'
import { identifier } from '../identifier.ts'
import { search } from './search.ts'

const searchBody = bodySchema(searchRequest)
const searchBetaBody = bodySchema(searchBetaRequest)

/** Routes of both searches: `/v1/search` (§4.7) and `/v1beta/search` (§4.6). */
export function searchRoutes(corpus: Corpus) {
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/v1/search', async (c) => {
    const { body, unknown } = await readJsonAndUnknown(c, searchBody, unprocessable)
    return new JsonResponse(searchResponse(corpus, body, unknown))
  })

  routes.post('/v1beta/search', async (c) => {
    const body = await readJson(c, searchBetaBody, unprocessable)
    const { results, warnings } = search(corpus, {
      queries: body.search_queries ?? [],
      objective: body.objective,
      mode: betaMode(body.processor),
      maxResults: body.max_results,
      maxCharsPerResult: body.max_chars_per_result,
      sourcePolicy: body.source_policy,
    })
    return new JsonResponse({
      search_id: identifier('search'),
      results,
      ...(warnings.length > 0 && { warnings }),
    } satisfies SearchBetaResponse)
  })

  return routes
}

/** Maps the processor of a beta search to a mode. `base` is the cheaper one; the interface names no others (§4.6). */
function betaMode(processor = 'base'): SearchMode {
  return processor === 'base' ? 'basic' : 'advanced'
}

/** The response of `/v1/search` (§4.7) to a valid request, which also had these fields. */
export function searchResponse(
  corpus: Corpus,
  body: SearchRequest,
  unknown: readonly string[] = [],
): SearchResponse {
  const settings = body.advanced_settings
  const { results, warnings } = search(corpus, {
    queries: body.search_queries,
    objective: body.objective,
    mode: body.mode ?? 'advanced',
    maxResults: settings?.max_results,
    maxCharsPerResult: settings?.excerpt_settings?.max_chars_per_result,
    maxCharsTotal: body.max_chars_total,
    sourcePolicy: settings?.source_policy,
  })
  warnings.push(...ignoredFields(unknown, 'search'))
  if (settings?.location !== undefined) {
    warnings.push(ignored('location', 'the documents belong to no country'))
  }
  if (settings?.fetch_policy !== undefined) {
    warnings.push(ignored('fetch_policy', 'the documents are at hand and need no fetching'))
  }
  return {
    search_id: identifier('search'),
    session_id: body.session_id ?? identifier('session'),
    results,
    warnings: warnings.length === 0 ? null : warnings,
    usage: [{ name: 'search', count: 1 }],
  }
}
