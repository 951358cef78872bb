import { randomUUID } from 'node:crypto'
import { isObject } from '../../protocol/json.ts'
import type { Processor, ProcessorTask } from '../processor/processor.ts'
import type { RunOutcome } from './task-store.ts'

/** Executes a task once. Never rejects: whatever the processor throws or wrongly returns is a failed run. */
export async function attempt(
  processor: Processor,
  task: ProcessorTask,
  signal: AbortSignal,
): Promise<RunOutcome> {
  try {
    const { output, warnings = [] } = await processor.run(task, signal)
    if (!isObject(output)) throw new TypeError('the processor returned no output')
    // An output that is not serializable fails the run instead of the transaction that stores it.
    JSON.stringify([output, warnings])
    return { status: 'completed', output, warnings }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { status: 'failed', error: { ref_id: randomUUID(), message, details: null } }
  }
}
