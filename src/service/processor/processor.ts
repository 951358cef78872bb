import type { TaskOutput } from '../../protocol/output.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { RunInput } from '../../protocol/task.ts'

/** A run to execute. Its input includes the group's default task spec. */
export interface RunTask {
  readonly run_id: string
  readonly input: RunInput
}

/** The result of a run. */
export interface RunResult {
  readonly output: TaskOutput
  readonly warnings?: readonly Warning[]
}

/** Executes runs. An error that it throws fails the run, with the error's message. */
export interface Processor {
  /** Executes one run. The signal is aborted when the service closes; the next start executes the run again. */
  run(task: RunTask, signal: AbortSignal): Promise<RunResult>
}
