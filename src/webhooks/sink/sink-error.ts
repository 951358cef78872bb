import { RivuletError } from '../../protocol/rivulet-error.ts'

/** A receiver did not accept what was posted to it. The error has no secret: only the origin of the URL, and no credentials of the answer. */
export class SinkError extends RivuletError {
  override readonly name = 'SinkError'
  override readonly code = 'sink'
  /** Origin of the receiver's URL. */
  readonly origin: string
  /** Status of the answer; undefined if there was no answer. */
  readonly status: number | undefined
  /** Whether the same request may succeed later: after 408, 425, 429 and 5xx, and if there was no answer. */
  override readonly retryable: boolean
  /** How long the receiver asks to wait, in ms, at most an hour; undefined if it does not. */
  readonly retryAfter: number | undefined

  constructor(
    origin: string,
    problem: string,
    answer: {
      readonly status?: number | undefined
      readonly retryable: boolean
      readonly retryAfter?: number | undefined
    },
  ) {
    super(`${origin} ${problem}`)
    this.origin = origin
    this.status = answer.status
    this.retryable = answer.retryable
    this.retryAfter = answer.retryAfter
  }
}
