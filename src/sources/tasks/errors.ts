import { isText } from '../../protocol/json.ts'
import type { TaskRun } from '../../protocol/task.ts'
import { RequestError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import { UncertainRequestError } from '../shapes/acted-on-once.ts'

/** A run ended without an output: it failed or was cancelled. Not retryable: create another run. */
export class RunFailedError extends RequestError {
  override readonly name = 'RunFailedError'
  override readonly code = 'run_failed'
  readonly run: TaskRun
  readonly run_id: string
  /** The service's reference for this failure, if the run's error has one. */
  readonly ref_id: string | undefined

  constructor(request: RequestLine, run: TaskRun) {
    const { run_id, status, error } = run
    const ref = isText(error?.ref_id) ? error.ref_id : undefined
    const reason = isText(error?.message) ? `: ${error.message}` : ''
    const reference = ref === undefined ? '' : ` (ref_id ${ref})`
    const advice = 'tasks.input has its input, to create another run'
    super(`the run ${run_id} ended as ${status}${reason}${reference}; ${advice}`, request)
    this.run = run
    this.run_id = run_id
    this.ref_id = ref
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    return { ...super.toJSON(), run_id: this.run_id, status: this.run.status, ref_id: this.ref_id }
  }
}

/** A run did not end within the `timeout`. It continues at the service. Retryable: wait again. */
export class RunTimeoutError extends RequestError {
  override readonly name = 'RunTimeoutError'
  override readonly code = 'run_timeout'
  override readonly retryable = true
  readonly run_id: string

  constructor(request: RequestLine, runId: string, timeout: number) {
    super(`the run ${runId} has not ended within ${timeout} ms; wait again with tasks.result`, request)
    this.run_id = runId
  }
}

/**
 * `tasks.run` has created a run, but could not follow it to its end. `cause` is the reason, such as a `RunTimeoutError`. The
 * run continues at the service: `tasks.result(error.run_id)` waits for it.
 *
 * Not retryable: the same call would create a second run.
 */
export class RunInterruptedError extends RequestError {
  override readonly name = 'RunInterruptedError'
  override readonly code = 'run_interrupted'
  readonly run_id: string

  constructor(runId: string, cause: RequestError) {
    const { method, path, message } = cause
    super(`the run ${runId} was created; go on with tasks.result (${message})`, { method, path }, { cause })
    this.run_id = runId
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    return { ...super.toJSON(), run_id: this.run_id }
  }
}

/**
 * The request that creates a run failed, but the service may have created it. `cause` is the request's own error.
 *
 * Not retryable: the same call may create a second run. Runs of a group can be added with `exactlyOnce`.
 */
export class UncertainRunError extends UncertainRequestError {
  override readonly name = 'UncertainRunError'
  override readonly code = 'uncertain_run'

  constructor(cause: RequestError) {
    super(cause, 'the service may have created the run; look before it is created again')
  }
}
