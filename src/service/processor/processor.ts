import type { TaskOutput } from '../../protocol/output.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { RunInput } from '../../protocol/task.ts'

/** A run to be carried out: its input with the group's default task spec filled in. */
export interface RunTask {
  readonly run_id: string
  readonly input: RunInput
}

/** What came of a run. */
export interface RunResult {
  readonly output: TaskOutput
  readonly warnings?: readonly Warning[]
}

/** Carries out runs. A thrown error fails the run, with the error's message. */
export interface Processor {
  run(task: RunTask, signal: AbortSignal): Promise<RunResult>
}
