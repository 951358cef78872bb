import { searchBetaRequest, searchRequest } from '../../../protocol/requests/search.ts'
import { searchBetaResponse, searchResponse } from '../answers/search.ts'
import type { Endpoint } from '../endpoint.ts'

const area = 'Search'

/** The endpoints of search (§4.6, §4.7). */
export const searchEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/v1/search',
    operationId: 'search',
    summary: 'Searches, with excerpts of each page (§4.7)',
    area,
    body: { name: 'SearchRequest', schema: searchRequest },
    answer: searchResponse,
    quota: 'search',
  },
  {
    method: 'POST',
    path: '/v1beta/search',
    operationId: 'searchBeta',
    summary: 'Searches, as the beta interface does (§4.6)',
    area,
    body: { name: 'SearchBetaRequest', schema: searchBetaRequest },
    answer: searchBetaResponse,
    quota: 'search',
  },
]
