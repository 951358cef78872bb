import { concatMap, lastValueFrom, Observable } from 'rxjs'
import { isObject, isText, parseJson } from '../../protocol/json.ts'
import { RequestError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { ApiRequest, StreamMessage } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { AnswerFailedError, AnswerInterruptedError } from './answer-errors.ts'
import type { AnswerProblem } from './answer-errors.ts'
import { onceActedOn } from './acted-on-once.ts'
import { applyBackpressure } from './backpressure.ts'
import { awaitableAs, sourceOf } from './source.ts'
import type { AwaitableSource } from './source.ts'

/** One event of a streamed answer. */
export interface TextProgress<Event> {
  readonly event: Event
  /** The text of the answer so far, including the text of this event. */
  readonly text: string
}

/** The result of one message of the stream: an event, the complete answer at the end, both, or neither for a repeated event. */
export interface AnswerStep<Event, Final> {
  readonly event?: Event
  readonly final?: Final
}

/** Assembles an answer from the messages of its stream. */
export interface AnswerReader<Event, Final> {
  /** The text so far. */
  readonly text: string
  /** Reads the next message. Throws an error of {@link AnswerErrors}. */
  read(message: StreamMessage): AnswerStep<Event, Final>
}

/** Makes the errors of one answer. */
export interface AnswerErrors {
  /** The stream has something that the interface does not allow. */
  malformed(text: string, reason: string): AnswerInterruptedError
  /** The service reports a failure. */
  failed(text: string, problem: AnswerProblem): AnswerFailedError
  /** The line of the request, for errors of the reader. */
  readonly request: RequestLine
}

/** How long the service may take before its response and between two parts of it, in ms: it does research for an answer. */
export const ANSWER_WAIT = 600_000

/**
 * Emits the progress of a streamed answer; an `await` returns the complete answer. Each subscription sends one request, which
 * is retried only until the service has begun to answer.
 */
export function streamedAnswer<Event, Final>(
  context: Context,
  request: ApiRequest,
  readerOf: (errors: AnswerErrors) => AnswerReader<Event, Final>,
  signal: AbortSignal | undefined,
): AwaitableSource<TextProgress<Event>, Final> {
  type Step = { readonly progress: TextProgress<Event> } | { readonly final: Final }
  const { transport } = context
  const { redact, maxBodyBytes } = transport
  const errors: AnswerErrors = {
    request,
    malformed: (text, reason) => new AnswerInterruptedError(request, text, reason),
    failed: (text, { message, ref_id, code }) =>
      new AnswerFailedError(request, text, {
        message: redact(message),
        ref_id: ref_id === undefined ? undefined : redact(ref_id),
        code: code === undefined ? undefined : redact(code),
      }),
  }
  const steps = new Observable<Step>((subscriber) => {
    const reader = readerOf(errors)
    let isOpen = false
    let received = 0
    const read = (message: StreamMessage) => {
      received += message.data.length
      if (received > maxBodyBytes)
        throw errors.malformed(reader.text, `it is longer than ${maxBodyBytes} characters`)
      const { event, final } = reader.read(message)
      if (event !== undefined) subscriber.next({ progress: { event, text: reader.text } })
      if (final === undefined) return
      subscriber.next({ final })
      subscriber.complete()
    }
    const flow = transport.answer(request, {
      open() {
        isOpen = true
      },
      message(message) {
        try {
          read(message)
        } catch (error) {
          subscriber.error(error)
        }
      },
      end: () => subscriber.error(errors.malformed(reader.text, 'the stream ended before its last event')),
      error(cause) {
        const { text } = reader
        subscriber.error(
          isOpen ? new AnswerInterruptedError(request, text, reasonOf(cause), { cause }) : onceActedOn(cause),
        )
      },
    })
    return applyBackpressure(flow, subscriber)
  })
  const progress = steps.pipe(concatMap((step) => ('progress' in step ? [step.progress] : [])))
  const finals = steps.pipe(concatMap((step) => ('final' in step ? [step.final] : [])))
  return awaitableAs(progress, signal, () => lastValueFrom(sourceOf(finals, signal)))
}

/** The JSON object of a message; undefined for anything else. */
export function objectIn({ data }: StreamMessage): Readonly<Record<string, unknown>> | undefined {
  const value = parseJson(data)
  return isObject(value) ? value : undefined
}

/** The failure that a message reports: an `error` event, or an object with an `error`. */
export function problemIn(
  event: string | undefined,
  value: Readonly<Record<string, unknown>> | undefined,
): AnswerProblem | undefined {
  const error = value?.['error']
  if (error == null && event !== 'error' && value?.['type'] !== 'error') return undefined
  const details = isObject(error) ? error : (value ?? {})
  const { message, ref_id, code } = details
  return {
    message: isText(message) ? message : isText(error) ? error : 'the service gives no reason',
    ref_id: isText(ref_id) ? ref_id : undefined,
    code: isText(code) ? code : undefined,
  }
}

/** The message of an error without the line of its request. */
function reasonOf(error: unknown): string {
  if (!(error instanceof RequestError)) return String(error)
  const line = `${error.method} ${error.path}: `
  return error.message.startsWith(line) ? error.message.slice(line.length) : error.message
}
