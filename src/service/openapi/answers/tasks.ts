import { RUN_MESSAGES, type RunProgressMessage, type RunProgressStats } from '../../../protocol/run-trace.ts'
import { runInput } from '../../../protocol/requests/tasks.ts'
import type { ErrorEvent, TaskRunEvent } from '../../../protocol/task-group.ts'
import { RUN_STATUSES, type TaskRun, type TaskRunError, type TaskRunResult } from '../../../protocol/task.ts'
import type { TaskRunWebhook } from '../../../protocol/webhook.ts'
import * as s from './kinds.ts'
import { taskOutput } from './outputs.ts'
import { serviceProblem, warning } from './problems.ts'

const runError = s.component(
  'TaskRunError',
  s.object<TaskRunError>({ message: s.text }, { details: s.unknown, detail: s.unknown, ref_id: s.text }),
)

/** A task run (§2.7). */
export const taskRun = s.component(
  'TaskRun',
  s.object<TaskRun>(
    {
      run_id: s.id,
      status: s.oneOf(RUN_STATUSES),
      is_active: s.flag,
      processor: s.text,
      created_at: s.orNull(s.timestamp),
      modified_at: s.orNull(s.timestamp),
    },
    {
      warnings: s.orNull(s.list(warning)),
      error: s.orNull(runError),
      metadata: s.orNull(s.json),
      taskgroup_id: s.orNull(s.id),
      interaction_id: s.id,
    },
  ),
)

/** The input of a run (§2.8), as it was sent. */
export const storedInput = s.requested('RunInput', runInput)

/** The response of `GET …/runs/{run_id}/result`; beyond the interface document. */
export const taskRunResult = s.component(
  'TaskRunResult',
  s.object<TaskRunResult>({ run: taskRun, output: taskOutput }, {}),
)

/** The end of a run, or its state (§4.5). */
export const taskRunEvent = s.component(
  'TaskRunEvent',
  s.object<TaskRunEvent>(
    { type: s.oneOf(['task_run.state']), event_id: s.orNull(s.id), run: taskRun },
    { input: s.orNull(storedInput), output: s.orNull(taskOutput) },
  ),
)

/** A problem of a stream (§4.4). */
export const errorEvent = s.component(
  'ErrorEvent',
  s.object<ErrorEvent>({ type: s.oneOf(['error']), error: serviceProblem }, { event_id: s.id }),
)

type RunStreamEvent = TaskRunEvent | RunProgressStats | RunProgressMessage | ErrorEvent

const progressMessage = s.component(
  'RunProgressMessage',
  s.object<RunProgressMessage>(
    {
      type: s.openOneOf<RunProgressMessage['type']>(RUN_MESSAGES),
      message: s.text,
      timestamp: s.orNull(s.timestamp),
    },
    {},
  ),
)

/** A message in the stream of one run; beyond the interface document. */
export const runStreamEvent = s.component(
  'RunStreamEvent',
  s.variants<RunStreamEvent, 'type'>({
    'task_run.state': taskRunEvent,
    'task_run.progress_stats': s.component(
      'RunProgressStats',
      s.object<RunProgressStats>(
        {
          type: s.oneOf(['task_run.progress_stats']),
          source_stats: s.object<RunProgressStats['source_stats']>(
            {
              num_sources_considered: s.orNull(s.count),
              num_sources_read: s.orNull(s.count),
              sources_read_sample: s.orNull(s.list(s.text)),
            },
            {},
          ),
          progress_meter: s.numberFrom(0, 100),
        },
        {},
      ),
    ),
    'task_run.progress_msg.plan': progressMessage,
    'task_run.progress_msg.search': progressMessage,
    'task_run.progress_msg.result': progressMessage,
    'task_run.progress_msg.tool_call': progressMessage,
    'task_run.progress_msg.exec_status': progressMessage,
    error: errorEvent,
  }),
)

/** The webhook of a run (§6.1). */
export const taskRunWebhook = s.component(
  'TaskRunWebhook',
  s.object<TaskRunWebhook>({ type: s.oneOf(['task_run.status']), timestamp: s.timestamp, data: taskRun }, {}),
)
