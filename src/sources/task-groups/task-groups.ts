import { checkId, checkObject, checkOptions } from '../../protocol/check.ts'
import { groupSource } from '../../protocol/event.ts'
import type { TaskGroup } from '../../protocol/task-group.ts'
import type { Context } from '../context.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'

/** Options of `taskGroups.create`. */
export interface CreateTaskGroupOptions extends SourceOptions {
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Creates an empty task group; beyond the interface document. */
export function createTaskGroup(
  context: Context,
  options: CreateTaskGroupOptions = {},
): AwaitableSource<TaskGroup> {
  checkOptions('taskGroups.create', options, ['metadata', 'signal'])
  const { signal, ...body } = options
  if (body.metadata !== undefined) checkObject('metadata', body.metadata)
  return awaitable(
    requestShape<TaskGroup>(context, { method: 'POST', path: '/v1/tasks/groups', body, idempotent: false }),
    signal,
  )
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
