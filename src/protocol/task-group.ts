import type { TaskOutput } from './output.ts'
import type { ServiceProblem } from './problem.ts'
import type { RunInput, RunStatus, TaskRun, TaskSpec } from './task.ts'

/** The progress of a task group (§2.6). */
export interface TaskGroupStatus {
  readonly num_task_runs: number
  readonly task_run_status_counts: Readonly<Partial<Record<RunStatus, number>>>
  /** True while at least one run of the group is active. */
  readonly is_active: boolean
  readonly status_message: string | null
  readonly modified_at: string | null
}

/** A task group; beyond the interface document. */
export interface TaskGroup {
  readonly taskgroup_id: string
  readonly metadata?: Readonly<Record<string, unknown>> | null
  readonly status: TaskGroupStatus
  readonly created_at: string | null
}

/** The body that creates a task group; beyond the interface document. */
export interface CreateTaskGroupRequest {
  /** Data of the user's own, which the service returns with the group. Default: none. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** The body of `POST …/groups/{taskgroup_id}/runs` (§4.3). */
export interface AddRunsRequest {
  readonly inputs: readonly RunInput[]
  /** The task of inputs without a `task_spec`. */
  readonly default_task_spec?: TaskSpec
}

/** The response to adding runs (§4.3). An empty cursor is the beginning of its stream; a null one is no position. */
export interface AddRunsResponse {
  readonly status: TaskGroupStatus
  readonly run_ids: readonly string[]
  /** The position of these runs in the runs stream (§4.5). */
  readonly run_cursor: string | null
  /** The position of these runs in the events stream (§4.4). */
  readonly event_cursor: string | null
}

/** The group's status changed (§4.4). */
export interface TaskGroupStatusEvent {
  readonly type: 'task_group_status'
  readonly event_id: string
  readonly status: TaskGroupStatus
}

/** A run ended (§4.5); its shape in the events stream (§4.4) is beyond the interface document. */
export interface TaskRunEvent {
  readonly type: 'task_run.state'
  readonly event_id: string | null
  readonly run: TaskRun
  /** Sent with `include_input`. */
  readonly input?: RunInput | null
  /** Sent with `include_output`, if the run completed; beyond the interface document. */
  readonly output?: TaskOutput | null
}

/** The stream reports a problem (§4.4); the shape is beyond the interface document. */
export interface ErrorEvent {
  readonly type: 'error'
  readonly event_id?: string
  readonly error: ServiceProblem
}

/** An event in one of the two streams of a task group, discriminated by `type` (§4.4, §4.5). */
export type TaskGroupStreamEvent = TaskGroupStatusEvent | TaskRunEvent | ErrorEvent

/** The query of `GET …/groups/{taskgroup_id}/events` (§4.4); both fields are beyond the interface document. */
export interface GroupEventsQuery {
  /** Resume after this event. How many came before is unknown, so the stream completes after 10 s without a new event. */
  readonly last_event_id?: string
  /** Seconds without an event after which the service closes the stream. */
  readonly timeout?: number
}

/** The query of `GET …/groups/{taskgroup_id}/runs` (§4.5). */
export interface GroupRunsQuery {
  /**
   * Resume after this event; a `run_cursor` is valid too. How many came before is unknown, so the stream completes after
   * 10 s without a new event.
   */
  readonly last_event_id?: string
  /** Only runs that ended with this status. */
  readonly status?: RunStatus
  /** Whether runs come with their input. Default false. */
  readonly include_input?: boolean
  /** Whether runs come with their output. Default false. */
  readonly include_output?: boolean
}
