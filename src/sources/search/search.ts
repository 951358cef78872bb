import { ArgumentError } from '../../protocol/argument-error.ts'
import {
  checkCount,
  checkCountryCode,
  checkFields,
  checkGiven,
  checkObject,
  checkOneOf,
  checkOptions,
  checkSourcePolicy,
  checkText,
  checkTexts,
} from '../../protocol/check.ts'
import { SEARCH_MODES } from '../../protocol/search.ts'
import type {
  SearchBetaRequest,
  SearchBetaResponse,
  SearchRequest,
  SearchResponse,
} from '../../protocol/search.ts'
import type { Context } from '../context.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'

/** Searches (§4.7): one emission, results best first, then completes. */
export function search(
  context: Context,
  request: SearchRequest,
  options: SourceOptions = {},
): AwaitableSource<SearchResponse> {
  checkOptions('search', options, ['signal'])
  checkObject('request', request)
  checkTexts('search_queries', request.search_queries)
  checkGiven(request, {
    objective: checkText,
    mode: checkMode,
    max_chars_total: checkCount,
    advanced_settings: checkAdvancedSettings,
  })
  const call = { method: 'POST', path: '/v1/search', body: request, idempotent: true } as const
  return awaitable(requestShape<SearchResponse>(context, call, ['results']), options.signal)
}

function checkMode(argument: string, value: unknown): void {
  checkOneOf(argument, value, SEARCH_MODES)
}

function checkAdvancedSettings(argument: string, value: unknown): void {
  checkFields(argument, value, {
    max_results: checkCount,
    source_policy: checkSourcePolicy,
    excerpt_settings: checkExcerptSettings,
    location: checkCountryCode,
  })
}

function checkExcerptSettings(argument: string, value: unknown): void {
  checkFields(argument, value, { max_chars_per_result: checkCount })
}

/** Searches the way of the beta interface (§4.6): one emission, then completes. */
export function searchBeta(
  context: Context,
  request: SearchBetaRequest,
  options: SourceOptions = {},
): AwaitableSource<SearchBetaResponse> {
  checkOptions('searchBeta', options, ['signal'])
  checkObject('request', request)
  if (request.objective === undefined && request.search_queries === undefined) {
    const message = 'request has neither objective nor search_queries; it needs one of them'
    throw new ArgumentError('request', { message }, request)
  }
  checkGiven(request, {
    objective: checkText,
    search_queries: checkTexts,
    max_results: checkCount,
    max_chars_per_result: checkCount,
    source_policy: checkSourcePolicy,
  })
  const call = { method: 'POST', path: '/v1beta/search', body: request, idempotent: true } as const
  return awaitable(requestShape<SearchBetaResponse>(context, call, ['results']), options.signal)
}
