import type {
  AddRunsResponse,
  TaskGroup,
  TaskGroupStatus,
  TaskGroupStatusEvent,
  TaskGroupStreamEvent,
  TaskRunEvent,
  ErrorEvent,
} from '../../../protocol/task-group.ts'
import { RUN_STATUSES } from '../../../protocol/task.ts'
import * as s from './kinds.ts'
import { errorEvent, taskRunEvent } from './tasks.ts'

const status = s.component(
  'TaskGroupStatus',
  s.object<TaskGroupStatus>(
    {
      num_task_runs: s.count,
      task_run_status_counts: s.someOf(RUN_STATUSES, s.count),
      is_active: s.flag,
      status_message: s.orNull(s.text),
      modified_at: s.orNull(s.timestamp),
    },
    {},
  ),
)

/** A task group; beyond the interface document. */
export const taskGroup = s.component(
  'TaskGroup',
  s.object<TaskGroup>(
    { taskgroup_id: s.id, status, created_at: s.orNull(s.timestamp) },
    { metadata: s.orNull(s.json) },
  ),
)

/** The response to adding runs (§4.3). */
export const addRunsResponse = s.component(
  'AddRunsResponse',
  s.object<AddRunsResponse>(
    { status, run_ids: s.list(s.id), run_cursor: s.orNull(s.text), event_cursor: s.orNull(s.text) },
    {},
  ),
)

/** A message in the stream of a group (§4.4). */
export const groupStreamEvent = s.component(
  'TaskGroupStreamEvent',
  s.variants<TaskGroupStreamEvent, 'type'>({
    task_group_status: s.component(
      'TaskGroupStatusEvent',
      s.object<TaskGroupStatusEvent>({ type: s.oneOf(['task_group_status']), event_id: s.id, status }, {}),
    ),
    'task_run.state': taskRunEvent,
    error: errorEvent,
  }),
)

/** A message in the stream of a group's runs (§4.5). */
export const groupRunsStreamEvent = s.component(
  'TaskGroupRunsStreamEvent',
  s.variants<TaskRunEvent | ErrorEvent, 'type'>({ 'task_run.state': taskRunEvent, error: errorEvent }),
)
