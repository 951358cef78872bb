import { concat, defer, ignoreElements, map, of, switchMap, takeWhile, tap, throwError, timeout } from 'rxjs'
import type { Observable } from 'rxjs'
import { groupSource } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import type { TaskRunState } from '../../protocol/event.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import { MAX_TIMER_DELAY } from '../../protocol/timer-limit.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { groupRuns } from './runs.ts'
import { IncompleteStreamError } from '../shapes/incomplete-stream-error.ts'
import { withReconnect } from '../shapes/with-reconnect.ts'
import { taskGroup } from './read.ts'

/** The metadata key that identifies the input of a run. */
export const KEY = 'rivulet_key'

/** A request that may have added its inputs. */
export interface UncertainRequest {
  /** The keys of its inputs. */
  readonly keys: Iterable<string>
  /** Number of runs in the group before the request; undefined if unknown. */
  readonly runsBefore: number | undefined
  /** How long to search, in ms. */
  readonly timeout: number
  /** Called for each input that was added. */
  readonly onAdded: (key: string, runId: string) => void
}

/** The stream has not sent all runs yet. */
export class RunsMissingError extends Error {
  /** Number of runs that it has sent. */
  readonly seen: number

  constructor(seen: number, total: number) {
    super(`the runs stream has ${seen} of ${total} runs`)
    this.seen = seen
  }
}

/**
 * Determines which inputs of a request were added. Emits the group's status when that is certain: inputs without a call of
 * {@link UncertainRequest.onAdded} were not added.
 *
 * The runs stream (§4.5) has only ended runs, and no endpoint lists active ones. So it reads until every input was seen, or
 * the group is inactive and all its runs were seen. If the group has no more runs than before, it emits immediately.
 *
 * Failed reads are retried with backoff. Errors after the timeout, or with an error that is not retryable.
 */
export function settleRuns(
  context: Context,
  groupId: string,
  request: UncertainRequest,
): Observable<TaskGroupStatus> {
  const { scheduler } = context
  return defer(() => {
    const missing = new Set(request.keys)
    const see = (state: TaskRunState) => {
      const key = metadataOf(groupId, state)[KEY]
      if (typeof key === 'string' && missing.delete(key)) request.onAdded(key, state.run.run_id)
    }
    const search = allRuns(context, groupId, see, () => missing.size === 0)
    // The reads within retry by themselves. What remains is a search that came too early.
    const isTooEarly = (error: unknown) =>
      error instanceof RunsMissingError || error instanceof IncompleteStreamError

    return groupStatus(context, groupId).pipe(
      switchMap((now) =>
        // The stream of a group without runs would wait for the first one.
        now.num_task_runs === 0 || now.num_task_runs === request.runsBefore
          ? of(now)
          : search.pipe(withReconnect(context, groupSource(groupId), { retryable: isTooEarly })),
      ),
      timeout({
        first: Math.min(request.timeout, MAX_TIMER_DELAY),
        scheduler,
        with: () => throwError(() => new Error(`still uncertain after ${request.timeout} ms`)),
      }),
    )
  })
}

/** Reads the status of a group, and retries with backoff. */
export function groupStatus(context: Context, groupId: string): Observable<TaskGroupStatus> {
  return taskGroup(context, groupId).pipe(
    map((group) => checkedStatus(groupId, group.status)),
    withReconnect(context, groupSource(groupId)),
  )
}

/**
 * Reads the runs of a group from the beginning, with their inputs, until no run is active and each was seen, or until it is enough.
 * Then emits the group's status. Errors with a {@link RunsMissingError} if the group has got further runs meanwhile.
 */
export function allRuns(
  context: Context,
  groupId: string,
  see: (state: TaskRunState) => void,
  isEnough: () => boolean = () => false,
): Observable<TaskGroupStatus> {
  return defer(() => {
    const seen = new Set<string>()
    const runs = groupRuns(context, groupId, { include_input: true }).pipe(
      tap((event) => {
        if (event.type !== 'task_run.state') return
        seen.add(event.data.run.run_id)
        see(event.data)
      }),
      takeWhile(() => !isEnough()),
      ignoreElements(),
    )
    return concat(runs, groupStatus(context, groupId)).pipe(
      tap(({ is_active, num_task_runs }) => {
        if (!isEnough() && (is_active || seen.size < num_task_runs))
          throw new RunsMissingError(seen.size, num_task_runs)
      }),
    )
  })
}

/** Checks the fields that the search relies on. Without them, an added run could count as not added. */
function checkedStatus(groupId: string, status: unknown): TaskGroupStatus {
  if (
    isObject(status) &&
    typeof status['is_active'] === 'boolean' &&
    Number.isSafeInteger(status['num_task_runs'])
  )
    return status as unknown as TaskGroupStatus
  const request = { method: 'GET', path: groupSource(groupId) }
  throw new ProtocolError('the group has no status with is_active and num_task_runs', request, {
    retryable: false,
  })
}

/** The metadata of a run, from itself and its input. */
export function metadataOf(groupId: string, { run, input }: TaskRunState): Readonly<Record<string, unknown>> {
  // Without either, an added run would count as not added.
  if (input == null && !isObject(run.metadata)) {
    const request = { method: 'GET', path: `${groupSource(groupId)}/runs` }
    const what = `the run ${run.run_id} came without its input and metadata`
    throw new ProtocolError(what, request, { retryable: false })
  }
  return { ...run.metadata, ...input?.metadata }
}
