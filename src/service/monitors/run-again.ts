import type { TaskOutput } from '../../protocol/output.ts'
import type { Warning } from '../../protocol/problem.ts'
import { untilAborted } from '../../protocol/until-aborted.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { identifier } from '../identifier.ts'
import type { Processor } from '../processor/processor.ts'
import type { ProcessorSlots } from '../processor/slots.ts'
import { attempt } from '../tasks/attempt.ts'
import type { CompletedRun } from '../tasks/task-store.ts'
import type { SnapshotRequest } from './request.ts'

/** The dependencies of {@link runAgain}. */
export interface RerunContext {
  readonly corpus: Corpus
  readonly processor: Processor
  readonly slots: ProcessorSlots
  /** The completed run with this id; undefined for any other run. */
  readonly completedRun: (runId: string) => CompletedRun | undefined
}

/** The output of a repeated run, or the reason why it failed. */
export type Rerun =
  | { readonly output: TaskOutput; readonly warnings: readonly Warning[] }
  | { readonly error: string }

/**
 * Executes the task of a monitor's run once more: its input, schema, processor and earlier turns, without credentials for its
 * tool servers, which the service has deleted. The run is not stored. Throws only when the signal is aborted.
 */
export async function runAgain(
  { settings }: SnapshotRequest,
  { corpus, processor, slots, completedRun }: RerunContext,
  signal: AbortSignal,
): Promise<Rerun> {
  try {
    await untilAborted(corpus.settled(), signal)
  } catch (error) {
    signal.throwIfAborted()
    return { error: error instanceof Error ? error.message : String(error) }
  }
  const baseline = completedRun(settings.task_run_id)
  if (baseline === undefined) return { error: `The run ${settings.task_run_id} no longer exists` }
  const { output: _, ...task } = baseline
  const again = { ...task, run_id: identifier('trun'), report: () => {} }
  await slots.wait(signal)
  const running = attempt(processor, again, signal).finally(() => slots.release())
  // A processor that ignores its signal must not prevent the service from closing.
  const outcome = await untilAborted(running, signal)
  // The abort may have failed the run first.
  signal.throwIfAborted()
  if (outcome.status === 'failed') return { error: outcome.error.message }
  // The output as it will be stored: without fields that JSON does not have.
  return { output: JSON.parse(JSON.stringify(outcome.output)), warnings: outcome.warnings }
}
