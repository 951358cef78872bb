import { groupSource } from '../../protocol/event.ts'
import type { AddRunsResponse } from '../../protocol/task-group.ts'
import { RequestError } from '../../transport/errors.ts'

/** An input that was added, and its run. */
export interface AddedInput {
  /** The index in the caller's `inputs`. */
  readonly index: number
  readonly run_id: string
}

/** The state of a write. Every input is in one of three lists, in the order of the caller's `inputs`. */
export interface WriteProgress {
  readonly added: readonly AddedInput[]
  /** Indexes of the inputs that were not added: these can be added again. */
  readonly notAdded: readonly number[]
  /** Indexes of the inputs that may have been added: adding them again may duplicate their runs. */
  readonly inDoubt: readonly number[]
  /** The responses that were emitted before. */
  readonly answers: readonly AddRunsResponse[]
}

/**
 * Adding runs failed midway: some inputs were added, the others were not, and none is in doubt. `cause` is the reason, such
 * as a `ValidationError`. Its `issues` count from the first of `notAdded`, the start of the failed request.
 *
 * Not retryable: the same call would duplicate the added runs. To continue, add the inputs in `notAdded`.
 */
export class PartialWriteError extends RequestError {
  override readonly name: string = 'PartialWriteError'
  override readonly code: string = 'partial_write'
  readonly added: readonly AddedInput[]
  readonly notAdded: readonly number[]
  readonly answers: readonly AddRunsResponse[]

  constructor(
    groupId: string,
    cause: unknown,
    { added, notAdded, answers }: Omit<WriteProgress, 'inDoubt'>,
    message = `inputs added: ${added.length}, not added: ${notAdded.length}; add those of \`notAdded\` again${reason(cause)}`,
  ) {
    super(message, { method: 'POST', path: `${groupSource(groupId)}/runs` }, { cause })
    this.added = added
    this.notAdded = notAdded
    this.answers = answers
  }
}

/**
 * A request to add runs failed, but the service may have acted on it. `inDoubt` has the inputs of that request, `added` and
 * `notAdded` the others. `cause` is the request's own error.
 *
 * Not retryable: the same call may duplicate runs. With `exactlyOnce`, the library determines whether they were added.
 */
export class UncertainWriteError extends PartialWriteError {
  override readonly name = 'UncertainWriteError'
  override readonly code = 'uncertain_write'
  readonly inDoubt: readonly number[]
  /** Why it could not be determined whether the inputs in doubt were added; undefined without `exactlyOnce`. */
  readonly unsettled: unknown

  constructor(groupId: string, cause: unknown, progress: WriteProgress, unsettled?: unknown) {
    const { added, notAdded, inDoubt } = progress
    const counts = `inputs in doubt: ${inDoubt.length}, added: ${added.length}, not added: ${notAdded.length}`
    const failure =
      unsettled === undefined ? '' : `; could not determine whether they were added${reason(unsettled)}`
    super(groupId, cause, progress, `${counts}${reason(cause)}${failure}`)
    this.inDoubt = inDoubt
    this.unsettled = unsettled
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? ` (${error.message})` : ''
}
