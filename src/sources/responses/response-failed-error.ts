import { isText } from '../../protocol/json.ts'
import type { ResponseObject } from '../../protocol/response.ts'
import type { RequestLine } from '../../transport/errors.ts'
import { AnswerFailedError } from '../shapes/answer-errors.ts'

/** The service ended a response as `failed` (§1). Not retryable, as every {@link AnswerFailedError}. */
export class ResponseFailedError extends AnswerFailedError {
  override readonly name = 'ResponseFailedError'
  override readonly code = 'response_failed'
  readonly response: ResponseObject

  /** @param redact Removes the secrets of the request from a text. */
  constructor(
    request: RequestLine,
    text: string,
    response: ResponseObject,
    redact: (text: string) => string,
  ) {
    const { message, code } = response.error ?? {}
    super(request, text, {
      message: isText(message) ? redact(message) : 'the service gives no reason',
      code: isText(code) ? redact(code) : undefined,
    })
    this.response = response
  }
}
