import { concatMap } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import type { ChatChunk, ChatCompletion, ChatRequest } from '../../protocol/chat.ts'
import { checkOptions } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import { chatRequest } from '../../protocol/requests/chat.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { jsonSchemaOf } from '../shapes/answer-schema.ts'
import { checkedContent } from '../shapes/checked-content.ts'
import { actedOnOnce } from '../shapes/acted-on-once.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'
import { ANSWER_WAIT, streamedAnswer } from '../shapes/streamed-answer.ts'
import type { TextProgress } from '../shapes/streamed-answer.ts'
import { CompletionReader } from './completion-reader.ts'

/** Options of `chat.complete` and `responses.create` with a schema for the answer. */
export interface TypedAnswerOptions<Content> extends SourceOptions {
  /** The schema of the answer. It is sent with the request, and validates the answer. */
  readonly schema: AnswerSchema<Content>
}

/** A chat completion whose content was validated. */
interface CheckedCompletion<Content> {
  /** The content of the first choice, as the schema returned it. */
  readonly content: Content
  readonly completion: ChatCompletion
}

/** The calls of chat completions; beyond the interface document. */
export interface ChatCalls {
  /** Answers a conversation, with content of the schema. Errors with an `AnswerSchemaError` if it does not match. */
  complete<Content>(
    request: ChatRequest,
    options: TypedAnswerOptions<Content>,
  ): AwaitableSource<CheckedCompletion<Content>>
  /** Answers a conversation. Emits the completion, then completes. */
  complete(request: ChatRequest, options?: SourceOptions): AwaitableSource<ChatCompletion>
  /**
   * Answers a conversation in parts. Emits each part with the text so far; an `await` returns the whole completion. Errors with
   * an `AnswerInterruptedError` if the stream is cut, and with an `AnswerFailedError` if the service fails.
   */
  stream(
    request: ChatRequest,
    options?: SourceOptions,
  ): AwaitableSource<TextProgress<ChatChunk>, ChatCompletion>
}

/** Creates the calls of chat completions. No request is sent again once the service may have begun to answer. */
export function chatCalls(context: Context): ChatCalls {
  function complete<Content>(
    request: ChatRequest,
    options: TypedAnswerOptions<Content>,
  ): AwaitableSource<CheckedCompletion<Content>>
  function complete(request: ChatRequest, options?: SourceOptions): AwaitableSource<ChatCompletion>
  function complete(
    request: ChatRequest,
    options: SourceOptions & { readonly schema?: AnswerSchema<unknown> } = {},
  ): AwaitableSource<ChatCompletion | CheckedCompletion<unknown>> {
    checkOptions('chat.complete', options, ['schema', 'signal'])
    const { schema, signal } = options
    const call = callOf(context, request, schema, false)
    const completions = requestShape<ChatCompletion>(context, call, ['choices']).pipe(actedOnOnce())
    const answers: Observable<ChatCompletion | CheckedCompletion<unknown>> =
      schema === undefined
        ? completions
        : completions.pipe(
            concatMap(async (completion) => ({
              content: await checkedContent(schema, contentOf(completion, call)),
              completion,
            })),
          )
    return awaitable(answers, signal)
  }

  function stream(request: ChatRequest, options: SourceOptions = {}) {
    checkOptions('chat.stream', options, ['signal'])
    const call = callOf(context, request, undefined, true)
    return streamedAnswer(context, call, (errors) => new CompletionReader(errors), options.signal)
  }

  return { complete, stream }
}

function callOf(
  { transport }: Context,
  request: ChatRequest,
  schema: AnswerSchema<unknown> | undefined,
  stream: boolean,
): ApiRequest {
  checkRequest(chatRequest, request)
  let body: ChatRequest = { ...request, stream }
  if (schema !== undefined) {
    const given = request.response_format
    if (given !== undefined) throw new ArgumentError('response_format', 'left out, as schema sets it', given)
    const json_schema = { name: 'answer', schema: jsonSchemaOf(schema) }
    body = { ...body, response_format: { type: 'json_schema', json_schema } }
  }
  const call: ApiRequest = {
    method: 'POST',
    path: '/v1beta/chat/completions',
    body,
    quota: 'chat',
    minHeaders: ANSWER_WAIT,
    minSilence: ANSWER_WAIT,
    idempotent: false,
  }
  transport.check(call)
  return call
}

function contentOf({ choices }: ChatCompletion, call: ApiRequest): string {
  const [first]: readonly unknown[] = choices
  const message = isObject(first) ? first['message'] : undefined
  const content = isObject(message) ? message['content'] : undefined
  if (typeof content !== 'string') throw new ProtocolError('the completion has no content', call)
  return content
}
