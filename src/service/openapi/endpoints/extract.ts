import { extractRequest } from '../../../protocol/requests/extract.ts'
import { extractResponse } from '../answers/extract.ts'
import type { Endpoint } from '../endpoint.ts'

/** The endpoint of Extract; beyond the interface document. */
export const extractEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/v1/extract',
    operationId: 'extract',
    summary: 'Returns excerpts or the whole text of pages',
    area: 'Extract',
    body: { name: 'ExtractRequest', schema: extractRequest },
    answer: extractResponse,
    quota: 'extract',
  },
]
