/* The events in the stream of one run besides `task_run.state`. All of this file is beyond the interface document. */

/** How far a run is. Only the current one is sent. */
export interface RunProgressStats {
  readonly type: 'task_run.progress_stats'
  readonly source_stats: {
    readonly num_sources_considered: number | null
    readonly num_sources_read: number | null
    readonly sources_read_sample: readonly string[] | null
  }
  /** 0 to 100. */
  readonly progress_meter: number
}

/** Every kind of message of a run's trace. A service may add others. */
export const RUN_MESSAGES = [
  'task_run.progress_msg.plan',
  'task_run.progress_msg.search',
  'task_run.progress_msg.result',
  'task_run.progress_msg.tool_call',
  'task_run.progress_msg.exec_status',
] as const

/** A message of a run's trace. The whole trace is sent again on each connection. */
export interface RunProgressMessage {
  readonly type: (typeof RUN_MESSAGES)[number] | `task_run.progress_msg.${string}`
  readonly message: string
  readonly timestamp: string | null
}
