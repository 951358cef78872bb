import type { StandardIssue } from '../../protocol/standard-schema.ts'
import { RequestError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import { issuesText } from './answer-schema.ts'
import { RivuletError } from '../../protocol/rivulet-error.ts'

/**
 * The stream of an answer was cut, or contained something that the interface does not allow. `text` is what had arrived of
 * the answer. `cause` is the error of the transport, if there is one.
 *
 * Not retryable: the same call would make, and cost, a second answer.
 */
export class AnswerInterruptedError extends RequestError {
  override readonly name = 'AnswerInterruptedError'
  override readonly code = 'answer_interrupted'
  readonly text: string

  constructor(request: RequestLine, text: string, reason: string, options?: ErrorOptions) {
    super(`the answer is incomplete after ${text.length} characters: ${reason}`, request, options)
    this.text = text
  }
}

/** How the service describes a failure within a stream. */
export interface AnswerProblem {
  readonly message: string
  readonly ref_id?: string | undefined
  readonly code?: string | undefined
}

/**
 * The service has failed to make the answer. `text` is what had arrived of it.
 *
 * Not retryable: the same call would make, and cost, a second answer.
 */
export class AnswerFailedError extends RequestError {
  override readonly name: string = 'AnswerFailedError'
  override readonly code: string = 'answer_failed'
  readonly text: string
  /** The service's reference for this failure, if it gave one. */
  readonly ref_id: string | undefined
  /** The service's code for the kind of failure, if it gave one. */
  readonly serviceCode: string | undefined

  constructor(request: RequestLine, text: string, { message, ref_id, code }: AnswerProblem) {
    const reference = ref_id === undefined ? '' : ` (ref_id ${ref_id})`
    super(`the service failed to answer: ${message}${reference}`, request)
    this.text = text
    this.ref_id = ref_id
    this.serviceCode = code
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    return { ...super.toJSON(), ref_id: this.ref_id, serviceCode: this.serviceCode }
  }
}

/**
 * The text of an answer is not JSON or does not match the schema. `issues` has the paths and reasons.
 *
 * Not retryable: the same call would make, and cost, a second answer.
 */
export class AnswerSchemaError extends RivuletError {
  override readonly name = 'AnswerSchemaError'
  override readonly code = 'answer_schema'
  readonly issues: readonly StandardIssue[]
  /** The whole answer as received. */
  readonly text: string

  constructor(issues: readonly StandardIssue[], text: string, options?: ErrorOptions) {
    super(`the answer does not fit the schema: ${issuesText(issues)}`, options)
    this.issues = issues
    this.text = text
  }
}
