import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import * as z from 'zod'
import type { Warning } from '../../protocol/problem.ts'
import {
  SEARCH_MODES,
  type SearchBetaResponse,
  type SearchMode,
  type SearchResponse,
} from '../../protocol/search.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { JsonAnswer } from '../http/answers.ts'
import {
  list,
  MAX_NAME_CHARACTERS,
  MAX_QUERIES,
  MAX_QUERY_CHARACTERS,
  MAX_TOLD,
  limitedText,
} from '../http/request-limits.ts'
import {
  issue,
  location,
  optional,
  readJson,
  readJsonAndUnknown,
  sourcePolicy,
  unprocessable,
} from '../http/validation.ts'
import { newId, search } from './search.ts'

const query = limitedText(MAX_QUERY_CHARACTERS).refine(
  (given) => given.trim() !== '',
  'Expected a query that is not empty',
)
const queries = list(query, MAX_QUERIES)
const objective = limitedText(MAX_QUERY_CHARACTERS)
const count = z.int().min(1)

const fetchPolicy = z.object({
  max_age_seconds: optional(z.int().min(600)),
  timeout_seconds: optional(z.number().positive()),
  disable_cache_fallback: optional(z.boolean()),
})

const searchBody = z.object({
  search_queries: queries.refine(({ length }) => length > 0, 'Expected at least one query'),
  objective: optional(objective),
  mode: optional(z.enum(SEARCH_MODES)),
  advanced_settings: optional(
    z.object({
      max_results: optional(count),
      source_policy: optional(sourcePolicy),
      location: optional(location),
      excerpt_settings: optional(z.object({ max_chars_per_result: optional(count) })),
      fetch_policy: optional(fetchPolicy),
    }),
  ),
  max_chars_total: optional(count),
  session_id: optional(limitedText(MAX_NAME_CHARACTERS, 1)),
  client_model: optional(limitedText(MAX_NAME_CHARACTERS)),
})

const searchBetaBody = z.object({
  objective: optional(objective),
  search_queries: optional(queries),
  processor: optional(limitedText(MAX_NAME_CHARACTERS)),
  max_results: optional(count),
  max_chars_per_result: optional(count),
  source_policy: optional(sourcePolicy),
})

/** Both searches, each under its own prefix: `/v1/search` (§4.7) and `/v1beta/search` (§4.6). */
export function searchRoutes(corpus: Corpus) {
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/v1/search', async (c) => {
    const { body, unknown } = await readJsonAndUnknown(c, searchBody, unprocessable)
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
    for (const field of unknown.slice(0, MAX_TOLD)) warnings.push(ignored(field, 'search has no such field'))
    if (unknown.length > MAX_TOLD) {
      warnings.push({ type: 'warning', message: `${unknown.length - MAX_TOLD} more fields are ignored` })
    }
    if (settings?.location !== undefined) {
      warnings.push(ignored('location', 'the documents belong to no country'))
    }
    if (settings?.fetch_policy !== undefined) {
      warnings.push(ignored('fetch_policy', 'the documents are at hand and need no fetching'))
    }
    return new JsonAnswer({
      search_id: newId('search'),
      session_id: body.session_id ?? newId('session'),
      results,
      warnings: warnings.length === 0 ? null : warnings,
      usage: [{ name: 'search', count: 1 }],
    } satisfies SearchResponse)
  })

  routes.post('/v1beta/search', async (c) => {
    const body = await readJson(c, searchBetaBody, unprocessable)
    const asked = body.search_queries ?? []
    if (asked.length === 0 && !body.objective?.trim()) {
      throw unprocessable([issue(['body', 'search_queries'], 'Expected a query or an objective', 'missing')])
    }
    const { results } = search(corpus, {
      queries: asked,
      objective: body.objective,
      mode: betaMode(body.processor),
      maxResults: body.max_results,
      maxCharsPerResult: body.max_chars_per_result,
      sourcePolicy: body.source_policy,
    })
    return new JsonAnswer({ search_id: newId('search'), results } satisfies SearchBetaResponse)
  })

  return routes
}

/** `base` is the cheaper one of the beta's processors; the others' names are not shown (§4.6). */
function betaMode(processor = 'base'): SearchMode {
  return processor === 'base' ? 'basic' : 'advanced'
}

function ignored(parameter: string, reason: string): Warning {
  return { type: 'warning', message: `${parameter} is ignored: ${reason}`, detail: { parameter } }
}
