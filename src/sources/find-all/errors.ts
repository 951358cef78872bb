import { findAllSource } from '../../protocol/find-all-event.ts'
import type { FindAllResult } from '../../protocol/find-all.ts'
import { RequestError } from '../../transport/errors.ts'

/**
 * A run of `findAll.run` failed or was cancelled. `result` has the candidates that it had found. Not retryable: that would
 * create another run.
 */
export class FindAllFailedError extends RequestError {
  override readonly name = 'FindAllFailedError'
  override readonly code = 'find_all_failed'
  readonly result: FindAllResult

  constructor(findAllId: string, result: FindAllResult) {
    const { status, termination_reason } = result.run.status
    const reason = termination_reason == null ? '' : ` (${termination_reason})`
    const what = status === 'cancelled' ? 'was cancelled' : 'failed'
    const request = { method: 'GET', path: `${findAllSource(findAllId)}/result` }
    const advice = 'they are in the `result` of the error, and another call creates another run'
    super(`the run ${what}${reason} with ${result.candidates.length} candidates; ${advice}`, request)
    this.result = result
  }
}

/**
 * `findAll.run` cannot follow its run any further; `cause` is why. The run may continue at the service: read it with
 * `findAll.events` and `findAll.result`. Not retryable, even if `cause` is: that would create another run.
 */
export class FindAllInterruptedError extends RequestError {
  override readonly name = 'FindAllInterruptedError'
  override readonly code = 'find_all_interrupted'
  /** Undefined if it is not known whether the run was created. */
  readonly findAllId: string | undefined

  constructor(findAllId: string | undefined, cause: unknown) {
    const [request, what] =
      findAllId === undefined
        ? [
            { method: 'POST', path: '/v1beta/findall/runs' },
            'the run may have been created; look for it before it is created again',
          ]
        : [
            { method: 'GET', path: findAllSource(findAllId) },
            'the run was created, but cannot be followed; go on with findAll.events',
          ]
    super(`${what} (${cause instanceof Error ? cause.message : String(cause)})`, request, { cause })
    this.findAllId = findAllId
  }
}
