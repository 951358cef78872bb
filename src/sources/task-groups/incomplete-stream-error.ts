import { RivuletError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { Shortfall } from './position.ts'

/**
 * A task group is done, but its stream did not send all events, although it was resumed for the client's `patience`. The
 * emitted events are valid. Retryable: subscribe again.
 */
export class IncompleteStreamError extends RivuletError {
  override readonly name = 'IncompleteStreamError'
  readonly retryable = true
  /** Number of ended runs that are missing; 0 if only the group's last status is missing. */
  readonly missing: number
  /** Number of ended runs that the stream must send. */
  readonly expected: number

  constructor(request: RequestLine, { missing, expected }: Shortfall, patience: number) {
    const what =
      missing === 0
        ? `the last status of a group of ${expected} ended runs is missing`
        : `${missing} of ${expected} ended runs are missing`
    super(
      `${what}, and no new event came for ${patience} ms; subscribe again, without last_event_id if the same are missing, ` +
        'or read a single run with GET /v1/tasks/runs/{run_id}/result',
      request,
    )
    this.missing = missing
    this.expected = expected
  }
}
