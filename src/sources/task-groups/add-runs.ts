import { map } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkBoolean, checkId, checkOptions, checkWait } from '../../protocol/check.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { addRunsRequest as addRunsSchema } from '../../protocol/requests/tasks.ts'
import type { AddRunsRequest, AddRunsResponse } from '../../protocol/task-group.ts'
import type { OutputSchema, TaskSpec } from '../../protocol/task.ts'
import type { Context } from '../context.ts'
import { KEY } from './settle-runs.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'
import { addRunsRequest, writeRuns } from './write-runs.ts'
import type { RunsToWrite } from './write-runs.ts'

/** Options of `taskGroups.addRuns`. */
export interface AddRunsOptions extends SourceOptions {
  /**
   * Tags each input with a key of its own, `rivulet_key` in its metadata. When a request may have been taken, its inputs are
   * looked for in the group's runs, and only those that are not there are sent again. Default false.
   */
  readonly exactlyOnce?: boolean
  /**
   * How long a request that failed may still be under way at the service, in ms: its inputs are looked for after that, or
   * after as long as the request had taken where that is longer. Default 1,000.
   */
  readonly settleDelay?: number
  /**
   * How long to look for inputs in doubt, in ms; then they stay in doubt. Active runs cannot be seen, so this is how long
   * runs may take. Infinity looks for ever. Default an hour.
   */
  readonly settleTimeout?: number
}

/** The names of {@link AddRunsOptions}. */
export const ADD_RUNS_OPTIONS = ['exactlyOnce', 'settleDelay', 'settleTimeout', 'signal']

/**
 * Adds runs to a group (§4.3), any number of them: each 1,000 inputs make one request, one after the other, and each
 * request's answer is emitted as it comes. A request that the service may have taken is never sent again. An `await`
 * resolves when all were added, to one answer: every run id, the cursors of the first request and the status of the last.
 *
 * Errors with an {@link UncertainWriteError} where it is not known whether a request was taken, and with a
 * {@link PartialWriteError} where inputs were added and the others were not: both tell which. Where nothing was added, the
 * error is the request's own, such as a `ValidationError`. Ending it in another way, by unsubscribing or by the signal,
 * leaves the request under way in doubt.
 *
 * With `exactlyOnce` it finds out what became of a request that may have been taken before it sends anything again. That
 * holds as long as a request which failed is taken within `settleDelay` or not at all, and the service shows it then. Of
 * inputs that were found so, the answer has the cursors of the answer before: the runs come somewhere behind them.
 */
export function addRuns(
  context: Context,
  groupId: string,
  request: AddRunsRequest,
  options: AddRunsOptions = {},
): AwaitableSource<AddRunsResponse> {
  checkOptions('taskGroups.addRuns', options, ADD_RUNS_OPTIONS)
  const runs = readRuns(context, groupId, request, options)
  return awaitable(writeRuns(context, runs).pipe(map(({ answer }) => answer)), options.signal, joined)
}

/** One answer for two requests: the runs begin where those of the first began. */
function joined(first: AddRunsResponse, next: AddRunsResponse): AddRunsResponse {
  return { ...first, status: next.status, run_ids: [...first.run_ids, ...next.run_ids] }
}

/** Checks what shall be added, and how. */
export function readRuns(
  { transport }: Context,
  groupId: string,
  request: AddRunsRequest,
  options: AddRunsOptions,
  outputSchema?: OutputSchema,
): RunsToWrite {
  const { exactlyOnce = false, settleDelay = 1_000, settleTimeout = 3_600_000 } = options
  checkId('groupId', groupId)
  checkBoolean('exactlyOnce', exactlyOnce)
  checkWait('settleDelay', settleDelay)
  checkWait('settleTimeout', settleTimeout, true)
  checkRequest(addRunsSchema, request)
  const { inputs, ...shared } = request
  if (outputSchema !== undefined) checkNoSchema('default_task_spec', shared.default_task_spec)
  for (const [index, input] of inputs.entries()) {
    if (outputSchema !== undefined) checkNoSchema(`inputs[${index}].task_spec`, input.task_spec)
    if (exactlyOnce && input.metadata !== undefined && KEY in input.metadata) {
      const argument = `inputs[${index}].metadata.${KEY}`
      throw new ArgumentError(argument, 'left out, as exactlyOnce sets it', input.metadata[KEY])
    }
  }
  // What JSON cannot hold shall not come to light when half of it was added.
  transport.check(addRunsRequest(groupId, request))
  return {
    groupId,
    entries: inputs.map((input, index) => ({ index, input })),
    shared,
    outputSchema,
    settling: exactlyOnce ? { delay: settleDelay, timeout: settleTimeout } : undefined,
  }
}

/** A schema of the execution takes the place of every other one. */
function checkNoSchema(argument: string, spec: TaskSpec | undefined): void {
  if (spec?.output_schema !== undefined)
    throw new ArgumentError(`${argument}.output_schema`, 'left out, as schema sets it', spec.output_schema)
}
