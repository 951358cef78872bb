import { groupSource } from '../../protocol/event.ts'
import type { AddRunsResponse } from '../../protocol/task-group.ts'
import { RivuletError } from '../../transport/errors.ts'

/** An input that was added, and the run that came of it. */
export interface AddedInput {
  /** Where the input stands in the caller's `inputs`. */
  readonly index: number
  readonly run_id: string
}

/** How far adding runs came. Every input is in one of the three lists, in the order of the caller's `inputs`. */
export interface WriteProgress {
  readonly added: readonly AddedInput[]
  /** Inputs that the service has not taken, by their index: these can be added again. */
  readonly notAdded: readonly number[]
  /** Inputs of which nobody knows, by their index: adding them again may double them. */
  readonly inDoubt: readonly number[]
  /** The answers that were emitted before. */
  readonly answers: readonly AddRunsResponse[]
}

/**
 * Adding runs stopped midway: some inputs were added, the others were not, and nothing is in doubt. `cause` tells why, a
 * `ValidationError` for instance. Its `issues` count from the first of `notAdded`, where the refused request began.
 *
 * Not retryable: the same call would add again what was added. To go on, add the inputs in `notAdded`.
 */
export class PartialWriteError extends RivuletError {
  override readonly name: string = 'PartialWriteError'
  readonly retryable = false
  readonly added: readonly AddedInput[]
  readonly notAdded: readonly number[]
  readonly answers: readonly AddRunsResponse[]

  constructor(
    groupId: string,
    cause: unknown,
    { added, notAdded, answers }: Omit<WriteProgress, 'inDoubt'>,
    message = `inputs added: ${added.length}, not added: ${notAdded.length}${reason(cause)}`,
  ) {
    super(message, { method: 'POST', path: `${groupSource(groupId)}/runs` }, { cause })
    this.added = added
    this.notAdded = notAdded
    this.answers = answers
  }
}

/**
 * A request to add runs failed, and the service may have taken it nevertheless: `inDoubt` tells which inputs it was about,
 * `added` and `notAdded` what became of the others. `cause` is the request's own error.
 *
 * Not retryable: the same call may double runs. `exactlyOnce` finds out by itself what became of them.
 */
export class UncertainWriteError extends PartialWriteError {
  override readonly name = 'UncertainWriteError'
  readonly inDoubt: readonly number[]
  /** Why it could not be found out what became of the inputs in doubt; undefined where `exactlyOnce` was not asked for. */
  readonly unsettled: unknown

  constructor(groupId: string, cause: unknown, progress: WriteProgress, unsettled?: unknown) {
    const { added, notAdded, inDoubt } = progress
    const counts = `inputs in doubt: ${inDoubt.length}, added: ${added.length}, not added: ${notAdded.length}`
    const settling = unsettled === undefined ? '' : `; it could not be settled${reason(unsettled)}`
    super(groupId, cause, progress, `${counts}${reason(cause)}${settling}`)
    this.inDoubt = inDoubt
    this.unsettled = unsettled
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? ` (${error.message})` : ''
}
