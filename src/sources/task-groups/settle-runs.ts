import { concat, defer, ignoreElements, map, of, switchMap, takeWhile, tap, throwError, timeout } from 'rxjs'
import type { Observable } from 'rxjs'
import { groupSource, isObject } from '../../protocol/event.ts'
import type { TaskRunState } from '../../protocol/event.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import { MAX_TIMER_DELAY } from '../../protocol/timer-limit.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { groupRuns } from './runs.ts'
import { IncompleteStreamError } from './incomplete-stream-error.ts'
import { persisting } from '../shapes/persisting.ts'
import { getTaskGroup } from './task-groups.ts'

/** The metadata of a run that tells which input it came of. */
export const KEY = 'rivulet_key'

/** What is looked for, and for how long. */
export interface Doubt {
  /** The keys of the inputs in doubt. */
  readonly keys: Iterable<string>
  /** How many runs the group had before the request in doubt, where that is known. */
  readonly runsBefore: number | undefined
  /** How long to look, in ms. */
  readonly timeout: number
  /** Hears of each input that was taken. */
  readonly onTaken: (key: string, runId: string) => void
}

/** The service has not told everything yet. */
class Unsettled extends Error {}

/**
 * Finds out which inputs of a request the service has taken. Emits the group's status once that is certain: those that
 * {@link Doubt.onTaken} did not hear of were not taken.
 *
 * The runs stream (§4.5) shows runs that ended, and nothing lists those that are active. So it takes until every input was
 * seen, or until the group is inactive and as many runs were seen as it has. Where the group has no more runs than before
 * the request, nothing was taken, and that is known at once.
 *
 * Failed reads are backed off from and made again. Errors when the time is up, or when the service refuses to tell.
 */
export function settleRuns(context: Context, groupId: string, doubt: Doubt): Observable<TaskGroupStatus> {
  const { scheduler } = context
  return defer(() => {
    const missing = new Set(doubt.keys)
    const status = getTaskGroup(context, groupId).pipe(
      map((group) => countedStatus(groupId, group.status)),
      persisting(context, groupSource(groupId)),
    )
    const look = defer(() => {
      const seen = new Set<string>()
      const see = (state: TaskRunState) => {
        seen.add(state.run.run_id)
        const key = keyOf(state)
        if (key !== undefined && missing.delete(key)) doubt.onTaken(key, state.run.run_id)
      }
      // From the beginning: only then it is known whether the stream has told of every run.
      const runs = groupRuns(context, groupId, { include_input: true }).pipe(
        tap((event) => {
          if (event.type === 'task_run.state') see(event.data)
        }),
        takeWhile(() => missing.size > 0),
        ignoreElements(),
      )
      return concat(runs, status).pipe(
        tap(({ is_active, num_task_runs }) => {
          if (missing.size > 0 && (is_active || seen.size < num_task_runs))
            throw new Unsettled(`the service told of ${seen.size} of ${num_task_runs} runs`)
        }),
      )
    })
    // Every read within persists by itself: what is left is a look that came too early.
    const isTooEarly = (error: unknown) =>
      error instanceof Unsettled || error instanceof IncompleteStreamError

    return status.pipe(
      switchMap((now) =>
        // A group without runs is followed until it has one.
        now.num_task_runs === 0 || now.num_task_runs === doubt.runsBefore
          ? of(now)
          : look.pipe(persisting(context, groupSource(groupId), { retryable: isTooEarly })),
      ),
      timeout({
        // Some 24 days are as good as for ever.
        first: Math.min(doubt.timeout, MAX_TIMER_DELAY),
        scheduler,
        with: () => throwError(() => new Error(`nothing was certain within ${doubt.timeout} ms`)),
      }),
    )
  })
}

/** The status, which has to have what the settling decides by: otherwise a run that was taken could count as not taken. */
function countedStatus(groupId: string, status: unknown): TaskGroupStatus {
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

/** The key that the run was added with, in its input's metadata or in its own; undefined for somebody else's run. */
function keyOf({ run, input }: TaskRunState): string | undefined {
  // Then a run of ours could not be told from another one, and would count as not taken.
  if (input == null && !isObject(run.metadata)) {
    throw new Error(`the run ${run.run_id} was told of without its input and metadata`)
  }
  const key = input?.metadata?.[KEY] ?? run.metadata?.[KEY]
  return typeof key === 'string' ? key : undefined
}
