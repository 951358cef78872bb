import { map } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkBoolean, checkId, checkList, checkOptions, checkWait } from '../../protocol/check.ts'
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
   * Tags each input with a unique key, `rivulet_key` in its metadata. If the service may have acted on a failed request, its
   * inputs are searched for in the group's runs, and only missing ones are sent again. Default false.
   */
  readonly exactlyOnce?: boolean
  /**
   * How long the service may still be processing a failed request, in ms. The search starts after this delay, or after the
   * duration of the request if that is longer. Default 1,000.
   */
  readonly settleDelay?: number
  /**
   * How long to search for inputs in doubt, in ms; then they stay in doubt. Active runs cannot be found, so runs may take this
   * long. Infinity sets no limit. Default an hour.
   */
  readonly settleTimeout?: number
  /**
   * Whether the service counts the runs again for the `status` of its response. With false it may be that before the runs were
   * added, and the response comes sooner. Default: the service's, true. Beyond the interface document.
   */
  readonly refresh_status?: boolean
}

/** The names of {@link AddRunsOptions}. */
export const ADD_RUNS_OPTIONS = ['exactlyOnce', 'settleDelay', 'settleTimeout', 'refresh_status', 'signal']

/**
 * Adds any number of runs to a group (§4.3), in sequential requests of at most 1,000 inputs, and emits the response of each. A
 * request that the service may have acted on is never retried. An `await` resolves when all are added, to one response: every
 * run id, the cursors of the first request and the status of the last.
 *
 * Errors with an {@link UncertainWriteError} if it is unknown whether a request was accepted, and with a
 * {@link PartialWriteError} if some inputs were added and the others were not; both list the inputs. If nothing was added, the
 * error is the request's own, such as a `ValidationError`. Unsubscribing and aborting leave the request in flight in doubt.
 *
 * With `exactlyOnce` it determines whether an uncertain request was accepted before it sends anything again. This requires
 * that the service accepts a failed request within `settleDelay` or never, and then lists its runs. For inputs found this way,
 * the response has the cursors of the previous response: the runs come after them.
 */
export function addRuns(
  context: Context,
  groupId: string,
  request: AddRunsRequest,
  options: AddRunsOptions = {},
): AwaitableSource<AddRunsResponse> {
  checkOptions('taskGroups.addRuns', options, ADD_RUNS_OPTIONS)
  const runs = prepareRuns(context, groupId, request, options)
  return awaitable(writeRuns(context, runs).pipe(map(({ response }) => response)), options.signal, joined)
}

/** Joins two responses, with the cursors of the first. */
function joined(first: AddRunsResponse, next: AddRunsResponse): AddRunsResponse {
  return { ...first, status: next.status, run_ids: [...first.run_ids, ...next.run_ids] }
}

/** Checks the options of a write. */
export function writeSettings(options: AddRunsOptions): Pick<RunsToWrite, 'query' | 'settling'> & {
  readonly settleDelay: number
} {
  const { exactlyOnce = false, settleDelay = 1_000, settleTimeout = 3_600_000, refresh_status } = options
  checkBoolean('exactlyOnce', exactlyOnce)
  checkWait('settleDelay', settleDelay)
  checkWait('settleTimeout', settleTimeout, true)
  if (refresh_status !== undefined) checkBoolean('refresh_status', refresh_status)
  return {
    query: { refresh_status },
    settling: exactlyOnce ? { delay: settleDelay, timeout: settleTimeout } : undefined,
    settleDelay,
  }
}

/** Checks the arguments of a write. */
export function prepareRuns(
  { transport }: Context,
  groupId: string,
  request: AddRunsRequest,
  { outputSchema, ...options }: AddRunsOptions & { readonly outputSchema?: OutputSchema | undefined },
): RunsToWrite {
  checkId('groupId', groupId)
  const { query, settling } = writeSettings(options)
  checkRequest(addRunsSchema, request)
  checkList('inputs', request.inputs)
  const { inputs, ...shared } = request
  if (outputSchema !== undefined) checkNoSchema('default_task_spec', shared.default_task_spec)
  for (const [index, input] of inputs.entries()) {
    if (outputSchema !== undefined) checkNoSchema(`inputs[${index}].task_spec`, input.task_spec)
    if (settling !== undefined && input.metadata !== undefined && KEY in input.metadata) {
      const argument = `inputs[${index}].metadata.${KEY}`
      throw new ArgumentError(argument, 'left out, as exactlyOnce sets it', input.metadata[KEY])
    }
  }
  // Fails before the first request if a later input cannot be encoded as JSON.
  transport.check(addRunsRequest(groupId, request))
  return {
    groupId,
    entries: inputs.map((input, index) => ({ index, input })),
    shared,
    outputSchema,
    query,
    settling,
  }
}

/** The `schema` of an execution replaces every other output schema. */
function checkNoSchema(argument: string, spec: TaskSpec | undefined): void {
  if (spec?.output_schema !== undefined)
    throw new ArgumentError(`${argument}.output_schema`, 'left out, as schema sets it', spec.output_schema)
}
