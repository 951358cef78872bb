import { checkOptions } from '../../protocol/check.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { searchBetaRequest, searchRequest } from '../../protocol/requests/search.ts'
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

/** Searches (§4.7): emits one response, best results first, and completes. */
export function search(
  context: Context,
  request: SearchRequest,
  options: SourceOptions = {},
): AwaitableSource<SearchResponse> {
  checkOptions('search', options, ['signal'])
  checkRequest(searchRequest, request)
  const call = {
    method: 'POST',
    path: '/v1/search',
    body: request,
    quota: 'search',
    idempotent: true,
  } as const
  return awaitable(requestShape<SearchResponse>(context, call, ['results']), options.signal)
}

/** Searches with the beta interface (§4.6): emits one response and completes. */
export function searchBeta(
  context: Context,
  request: SearchBetaRequest,
  options: SourceOptions = {},
): AwaitableSource<SearchBetaResponse> {
  checkOptions('searchBeta', options, ['signal'])
  checkRequest(searchBetaRequest, request)
  const call = {
    method: 'POST',
    path: '/v1beta/search',
    body: request,
    quota: 'search',
    idempotent: true,
  } as const
  return awaitable(requestShape<SearchBetaResponse>(context, call, ['results']), options.signal)
}
