import { RivuletError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { Shortfall } from './position.ts'

/**
 * A task group is done, and its stream did not send all of its events, however often it was resumed: see `patience` of the
 * client. What was emitted is right, and there is more. Retryable: subscribe again.
 */
export class IncompleteStreamError extends RivuletError {
  override readonly name = 'IncompleteStreamError'
  readonly retryable = true
  /** Runs whose end was not sent; 0 where only the group's last status is missing. */
  readonly missing: number
  /** Runs whose end the stream has to send. */
  readonly expected: number

  constructor(request: RequestLine, { missing, expected }: Shortfall, patience: number) {
    const what =
      missing === 0
        ? `the last status of a group of ${expected} ended runs is missing`
        : `${missing} of ${expected} ended runs are missing`
    super(
      `${what}, and nothing new came for ${patience} ms; subscribe again, without last_event_id if the same are missing ` +
        'then, or read a single run with GET /v1/tasks/runs/{run_id}/result',
      request,
    )
    this.missing = missing
    this.expected = expected
  }
}
