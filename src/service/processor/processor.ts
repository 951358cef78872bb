import type { TaskOutput } from '../../protocol/output.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { RunInput } from '../../protocol/task.ts'
import type { Turn } from '../interactions/interactions.ts'

/** The progress of a run, for its event stream. Fields that are absent do not change. */
export interface ProcessorProgress {
  /** A message to add to the run's trace. */
  readonly message?: {
    readonly kind: 'plan' | 'search' | 'result' | 'tool_call' | 'exec_status'
    readonly text: string
  }
  /** Number of sources found so far. */
  readonly sourcesConsidered?: number
  /** Number of sources read so far. */
  readonly sourcesRead?: number
  /** URLs of some of the sources read. */
  readonly sourcesSample?: readonly string[]
  /** How much of the work is done, from 0 to 100. */
  readonly meter?: number
}

/** A run to execute. Its input includes the group's default task spec. Chats and responses are executed as runs too. */
export interface ProcessorTask {
  /** The id of the run, chat completion or response. */
  readonly run_id: string
  readonly input: RunInput
  /** The system messages of a chat, or the instructions of a response. The built-in processor ignores them. */
  readonly instructions?: string
  /** The earlier turns of the run's interaction, oldest first; bounded. */
  readonly context: readonly Turn[]
  /** Whether the basis has an entry for each element of a list too (§2.3). Default false. */
  readonly elementBasis?: boolean
  /** Reports progress. Never throws. */
  readonly report: (progress: ProcessorProgress) => void
}

/** The result of a run. */
export interface ProcessorResult {
  readonly output: TaskOutput
  readonly warnings?: readonly Warning[]
}

/** Executes runs. An error that it throws fails the run, with the error's message. */
export interface Processor {
  /**
   * Executes one run. The signal is aborted when the service closes; the next start executes the run again. For a chat or a
   * response it is also aborted when the client disconnects, and it is not executed again.
   */
  run(task: ProcessorTask, signal: AbortSignal): Promise<ProcessorResult>
}
