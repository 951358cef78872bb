import { checkId, checkOptions } from '../../protocol/check.ts'
import type { GroupEvent } from '../../protocol/event.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import { createGroupRequest } from '../../protocol/requests/tasks.ts'
import type {
  AddRunsRequest,
  AddRunsResponse,
  CreateTaskGroupRequest,
  TaskGroup,
} from '../../protocol/task-group.ts'
import type { TaskRun } from '../../protocol/task.ts'
import type { Context } from '../context.ts'
import { actedOnOnce } from '../shapes/acted-on-once.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { addRuns } from './add-runs.ts'
import type { AddRunsOptions } from './add-runs.ts'
import { groupEvents } from './events.ts'
import type { GroupEventsOptions } from './events.ts'
import { createExecute } from './execute.ts'
import { groupProgress } from './progress.ts'
import type { GroupProgress, GroupProgressOptions } from './progress.ts'
import { groupRun, taskGroup } from './read.ts'
import { createRetry } from './retry.ts'
import { groupErrors } from './run-errors.ts'
import type { GroupErrors } from './run-errors.ts'
import { createRuns } from './typed-runs.ts'

/** Options of `taskGroups.create`: the body of the request. */
export interface CreateTaskGroupOptions extends CreateTaskGroupRequest, SourceOptions {}

/** The calls of `client.taskGroups`. */
export interface TaskGroupCalls extends ReturnType<typeof taskGroupCalls> {}

/** Creates `client.taskGroups`. */
export function taskGroupCalls(context: Context) {
  return {
    /** Adds any number of runs (§4.3). Emits a response for each request of at most 1,000; an `await` returns one for all. */
    addRuns(
      groupId: string,
      request: AddRunsRequest,
      options?: AddRunsOptions,
    ): AwaitableSource<AddRunsResponse> {
      return addRuns(context, groupId, request, options)
    },
    execute: createExecute(context),
    /**
     * Adds the inputs of failed runs to the group again, and emits which run replaces which; an `await` returns all. Never
     * replaces a run twice, by a second call either.
     */
    retry: createRetry(context),
    /** Groups the failed runs by their error, updated while the group runs; an `await` returns the errors of the whole group. */
    errors(groupId: string, options?: SourceOptions): AwaitableSource<GroupErrors> {
      return groupErrors(context, groupId, options)
    },
    /** Emits status updates and run completions (§4.4), resumed automatically until the group is done. */
    events(groupId: string, options?: GroupEventsOptions): Source<GroupEvent> {
      return groupEvents(context, groupId, options)
    },
    runs: createRuns(context),
    /** Emits the progress of a group (§4.4) at each change; completes with the group. */
    progress(groupId: string, options?: GroupProgressOptions): Source<GroupProgress> {
      return groupProgress(context, groupId, options)
    },
    /**
     * Creates an empty group and emits it. Never creates two: a request that the service may have acted on is not sent again, and
     * errors with an `UncertainRequestError`. Beyond the interface document.
     */
    create(options: CreateTaskGroupOptions = {}): AwaitableSource<TaskGroup> {
      checkOptions('taskGroups.create', options, [...namesOf(createGroupRequest), 'signal'])
      const { signal, ...body } = options
      checkRequest(createGroupRequest, body)
      const call = { method: 'POST', path: '/v1/tasks/groups', body, idempotent: false } as const
      return awaitable(requestShape<TaskGroup>(context, call).pipe(actedOnOnce()), signal)
    },
    /** Reads a group. Beyond the interface document. */
    get(groupId: string, options: SourceOptions = {}): AwaitableSource<TaskGroup> {
      checkId('groupId', groupId)
      checkOptions('taskGroups.get', options, ['signal'])
      return awaitable(taskGroup(context, groupId), options.signal)
    },
    /** Reads a run of a group. Beyond the interface document. */
    getRun(groupId: string, runId: string, options: SourceOptions = {}): AwaitableSource<TaskRun> {
      checkId('groupId', groupId)
      checkId('runId', runId)
      checkOptions('taskGroups.getRun', options, ['signal'])
      return awaitable(groupRun(context, groupId, runId), options.signal)
    },
  }
}
