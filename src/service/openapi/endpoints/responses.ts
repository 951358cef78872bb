import { responseRequest } from '../../../protocol/requests/response.ts'
import { responseObject, responseStreamEvent } from '../answers/responses.ts'
import type { Endpoint } from '../endpoint.ts'

/** The endpoints of responses (§1; reading a stored response is beyond the interface document). */
export const responseEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/v1/responses',
    operationId: 'createResponse',
    summary: 'Answers the last message of the input, with citations',
    area: 'Responses',
    body: { name: 'ResponseRequest', schema: responseRequest },
    answer: responseObject,
    events: responseStreamEvent,
    errors: {
      404: 'There is nothing to continue with the id previous_response_id',
      503: 'Too many questions wait for an answer, or schemas for a check',
    },
    quota: 'chat',
  },
  {
    method: 'GET',
    path: '/v1/responses/:response_id',
    operationId: 'getResponse',
    summary: 'Returns a completed response',
    area: 'Responses',
    answer: responseObject,
  },
]
