import { RivuletError } from '../../protocol/rivulet-error.ts'

/** A receiver of notifications did not accept one. The error has no secret: only the origin of the URL, and no credentials of the answer. */
export class NotifyError extends RivuletError {
  override readonly name = 'NotifyError'
  override readonly code = 'notify'
  /** Origin of the receiver's URL. */
  readonly origin: string
  /** Status of the answer; undefined if there was no answer. */
  readonly status: number | undefined
  /** Whether the same request may succeed later. */
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

/** An event of the log that no notifier can use, such as one without labels. */
export class AlertEventError extends RivuletError {
  override readonly name = 'AlertEventError'
  override readonly code = 'alert_event'
}
