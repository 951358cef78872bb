import type { Observable } from 'rxjs'
import { groupSource } from '../../protocol/event.ts'
import { segment } from '../../protocol/id.ts'
import type { TaskGroup } from '../../protocol/task-group.ts'
import type { TaskRun } from '../../protocol/task.ts'
import type { Context } from '../context.ts'
import { requestShape } from '../shapes/request.ts'
import { runAt } from '../tasks/read.ts'

/** Reads a task group. */
export function taskGroup(context: Context, groupId: string): Observable<TaskGroup> {
  return requestShape(context, { method: 'GET', path: groupSource(groupId), idempotent: true })
}

/** Reads a run of a group. */
export function groupRun(context: Context, groupId: string, runId: string): Observable<TaskRun> {
  return runAt(context, `${groupSource(groupId)}/runs/${segment(runId)}`, runId)
}
