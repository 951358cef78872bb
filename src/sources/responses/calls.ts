import { concatMap, map } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions } from '../../protocol/check.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { responseRequest } from '../../protocol/requests/response.ts'
import type { ResponseObject, ResponseRequest } from '../../protocol/response.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { TypedAnswerOptions } from '../chat/calls.ts'
import type { Context } from '../context.ts'
import { jsonSchemaOf } from '../shapes/answer-schema.ts'
import { checkedContent } from '../shapes/checked-content.ts'
import { actedOnOnce } from '../shapes/acted-on-once.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'
import { ANSWER_WAIT, streamedAnswer } from '../shapes/streamed-answer.ts'
import type { TextProgress } from '../shapes/streamed-answer.ts'
import { ResponseFailedError } from './response-failed-error.ts'
import { ResponseReader } from './response-reader.ts'
import type { StreamedResponseEvent } from './response-reader.ts'
import { responseText } from './response-text.ts'

/** A response whose text was validated. */
interface CheckedResponse<Content> {
  /** The text of the response, as the schema returned it. */
  readonly content: Content
  readonly response: ResponseObject
}

/** The calls of responses (§1). */
export interface ResponseCalls {
  /** Creates a response, with text of the schema. Errors with an `AnswerSchemaError` if it does not match. */
  create<Content>(
    request: ResponseRequest,
    options: TypedAnswerOptions<Content>,
  ): AwaitableSource<CheckedResponse<Content>>
  /** Creates a response and emits it. Errors with a `ResponseFailedError` for one that has failed. */
  create(request: ResponseRequest, options?: SourceOptions): AwaitableSource<ResponseObject>
  /**
   * Creates a response in parts. Emits each event with the text so far; an `await` returns the whole response. A repeated
   * event is dropped. Errors with an `AnswerInterruptedError` if the stream is cut or lacks an event, and with a
   * `ResponseFailedError` if the response fails.
   */
  stream(
    request: ResponseRequest,
    options?: SourceOptions,
  ): AwaitableSource<TextProgress<StreamedResponseEvent>, ResponseObject>
}

/** Creates the calls of responses. No request is sent again once the service may have begun to answer. */
export function responseCalls(context: Context): ResponseCalls {
  const { redact } = context.transport

  function create<Content>(
    request: ResponseRequest,
    options: TypedAnswerOptions<Content>,
  ): AwaitableSource<CheckedResponse<Content>>
  function create(request: ResponseRequest, options?: SourceOptions): AwaitableSource<ResponseObject>
  function create(
    request: ResponseRequest,
    options: SourceOptions & { readonly schema?: AnswerSchema<unknown> } = {},
  ): AwaitableSource<ResponseObject | CheckedResponse<unknown>> {
    checkOptions('responses.create', options, ['schema', 'signal'])
    const { schema, signal } = options
    const call = callOf(context, request, schema, false)
    const responses = requestShape<ResponseObject>(context, call, ['output']).pipe(
      actedOnOnce(),
      map((response) => {
        if (response.status !== 'failed') return response
        throw new ResponseFailedError(call, responseText(response), response, redact)
      }),
    )
    const answers: Observable<ResponseObject | CheckedResponse<unknown>> =
      schema === undefined
        ? responses
        : responses.pipe(
            concatMap(async (response) => ({
              content: await checkedContent(schema, responseText(response)),
              response,
            })),
          )
    return awaitable(answers, signal)
  }

  function stream(request: ResponseRequest, options: SourceOptions = {}) {
    checkOptions('responses.stream', options, ['signal'])
    const call = callOf(context, request, undefined, true)
    return streamedAnswer(context, call, (errors) => new ResponseReader(errors, redact), options.signal)
  }

  return { create, stream }
}

function callOf(
  { transport }: Context,
  request: ResponseRequest,
  schema: AnswerSchema<unknown> | undefined,
  stream: boolean,
): ApiRequest {
  checkRequest(responseRequest, request)
  let body: ResponseRequest = { ...request, stream }
  if (schema !== undefined) {
    const given = request.text?.format
    if (given !== undefined) throw new ArgumentError('text.format', 'left out, as schema sets it', given)
    const format = { type: 'json_schema', name: 'answer', schema: jsonSchemaOf(schema) } as const
    body = { ...body, text: { ...request.text, format } }
  }
  const call: ApiRequest = {
    method: 'POST',
    path: '/v1/responses',
    body,
    quota: 'chat',
    minHeaders: ANSWER_WAIT,
    minSilence: ANSWER_WAIT,
    idempotent: false,
  }
  transport.check(call)
  return call
}
