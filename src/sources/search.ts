import { ArgumentError } from '../protocol/argument-error.ts'
import {
  checkCountryCode,
  checkInteger,
  checkObject,
  checkOneOf,
  checkSourcePolicy,
  checkText,
  checkTexts,
} from '../protocol/check.ts'
import { SEARCH_MODES } from '../protocol/search.ts'
import type {
  SearchBetaRequest,
  SearchBetaResponse,
  SearchRequest,
  SearchResponse,
} from '../protocol/search.ts'
import type { Context } from './context.ts'
import { requestShape } from './request.ts'
import { sourceOf } from './source.ts'
import type { Source, SourceOptions } from './source.ts'

/** Searches (§4.7): one emission, results best first, then completes. */
export function search(
  context: Context,
  request: SearchRequest,
  { signal }: SourceOptions = {},
): Source<SearchResponse> {
  checkObject('request', request)
  checkTexts('search_queries', request.search_queries)
  if (request.objective !== undefined) checkText('objective', request.objective)
  if (request.mode !== undefined) checkOneOf('mode', request.mode, SEARCH_MODES)
  if (request.max_chars_total !== undefined) checkInteger('max_chars_total', request.max_chars_total, 1)
  const settings = request.advanced_settings
  if (settings !== undefined) {
    checkObject('advanced_settings', settings)
    if (settings.max_results !== undefined)
      checkInteger('advanced_settings.max_results', settings.max_results, 1)
    if (settings.source_policy !== undefined) {
      checkSourcePolicy('advanced_settings.source_policy', settings.source_policy)
    }
    if (settings.excerpt_settings?.max_chars_per_result !== undefined) {
      checkInteger(
        'advanced_settings.excerpt_settings.max_chars_per_result',
        settings.excerpt_settings.max_chars_per_result,
        1,
      )
    }
    if (settings.location !== undefined) checkCountryCode('advanced_settings.location', settings.location)
  }
  const call = { method: 'POST', path: '/v1/search', body: request, idempotent: true } as const
  return sourceOf(requestShape<SearchResponse>(context, call, ['results']), signal)
}

/** Searches the way of the beta interface (§4.6): one emission, then completes. */
export function searchBeta(
  context: Context,
  request: SearchBetaRequest,
  { signal }: SourceOptions = {},
): Source<SearchBetaResponse> {
  checkObject('request', request)
  if (request.objective === undefined && request.search_queries === undefined) {
    throw new ArgumentError('request', 'a request with an objective or search_queries', request)
  }
  if (request.objective !== undefined) checkText('objective', request.objective)
  if (request.search_queries !== undefined) checkTexts('search_queries', request.search_queries)
  if (request.max_results !== undefined) checkInteger('max_results', request.max_results, 1)
  if (request.max_chars_per_result !== undefined)
    checkInteger('max_chars_per_result', request.max_chars_per_result, 1)
  if (request.source_policy !== undefined) checkSourcePolicy('source_policy', request.source_policy)
  const call = { method: 'POST', path: '/v1beta/search', body: request, idempotent: true } as const
  return sourceOf(requestShape<SearchBetaResponse>(context, call, ['results']), signal)
}
