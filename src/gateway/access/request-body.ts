import type { BodyFailure, BodyIntake } from '../../http/body-intake.ts'
import { readRequest } from '../../http/fetch-handler.ts'
import { isObject, parseJson } from '../../protocol/json.ts'
import { refusalResponse } from '../http-answer.ts'

/** Delay before a request is sent again that was refused since bodies take too much memory, in ms. */
const RETRY_AFTER = 1_000

/** The JSON object of a request, or the response that refuses it. */
export async function jsonBody(
  request: Request,
  intake: BodyIntake,
): Promise<Readonly<Record<string, unknown>> | Response> {
  // Also keeps out forms of other sites, which a browser sends without a preflight.
  if (!/^application\/json\s*(;|$)/i.test(request.headers.get('content-type') ?? '')) {
    return refusalResponse('invalid', 'the content-type must be application/json', { status: 415 })
  }
  const early = intake.refusalOf(request.headers.get('content-length'))
  if (early !== undefined) return bodyRefusal(early)
  const body = intake.open()
  try {
    readRequest(request, body)
    const bytes = await body.bytes
    if (typeof bytes === 'string') return bodyRefusal(bytes)
    const json = parseJson(new TextDecoder().decode(bytes))
    return isObject(json) ? json : refusalResponse('invalid', 'the body must be a JSON object')
  } finally {
    body.release()
  }
}

function bodyRefusal(failure: BodyFailure): Response {
  switch (failure) {
    case 'body_too_large':
      return refusalResponse('invalid', 'the body is too large', { status: 413 })
    case 'body_timeout':
      return refusalResponse('invalid', 'the body took too long to arrive', { status: 408 })
    case 'incomplete_body':
      return refusalResponse('invalid', 'the body is incomplete')
    case 'overloaded':
      return refusalResponse('unavailable', 'too many requests at the moment', { retryAfter: RETRY_AFTER })
  }
}
