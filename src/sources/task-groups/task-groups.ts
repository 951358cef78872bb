import { checkId, checkOptions } from '../../protocol/check.ts'
import { groupSource } from '../../protocol/event.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import { createGroupRequest } from '../../protocol/requests/tasks.ts'
import type { CreateTaskGroupRequest, TaskGroup } from '../../protocol/task-group.ts'
import type { TaskRun } from '../../protocol/task.ts'
import { segment } from '../../protocol/id.ts'
import type { Context } from '../context.ts'
import { actedOnOnce } from '../shapes/acted-on-once.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'
import { runAt } from '../tasks/read.ts'

/** Options of `taskGroups.create`: the body of the request. */
export interface CreateTaskGroupOptions extends CreateTaskGroupRequest, SourceOptions {}

/**
 * Creates an empty task group; beyond the interface document. Never creates two: a request that the service may have acted on is
 * not sent again, and errors with an `UncertainRequestError`.
 */
export function createTaskGroup(
  context: Context,
  options: CreateTaskGroupOptions = {},
): AwaitableSource<TaskGroup> {
  checkOptions('taskGroups.create', options, [...namesOf(createGroupRequest), 'signal'])
  const { signal, ...body } = options
  checkRequest(createGroupRequest, body)
  const call = { method: 'POST', path: '/v1/tasks/groups', body, idempotent: false } as const
  return awaitable(requestShape<TaskGroup>(context, call).pipe(actedOnOnce()), signal)
}

/** Reads a task group; beyond the interface document. */
export function getTaskGroup(
  context: Context,
  groupId: string,
  options: SourceOptions = {},
): AwaitableSource<TaskGroup> {
  checkId('groupId', groupId)
  checkOptions('taskGroups.get', options, ['signal'])
  return awaitable(
    requestShape<TaskGroup>(context, { method: 'GET', path: groupSource(groupId), idempotent: true }),
    options.signal,
  )
}

/** Reads a run of a group; beyond the interface document. */
export function getGroupRun(
  context: Context,
  groupId: string,
  runId: string,
  options: SourceOptions = {},
): AwaitableSource<TaskRun> {
  checkId('groupId', groupId)
  checkId('runId', runId)
  checkOptions('taskGroups.getRun', options, ['signal'])
  return awaitable(runAt(context, `${groupSource(groupId)}/runs/${segment(runId)}`, runId), options.signal)
}
