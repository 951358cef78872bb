import type { RunInput } from '../../../src/protocol/index.ts'
import type { NewRun } from '../../../src/service/tasks/task-store.ts'

/** A run as a request without a schema creates it. */
export function plainRun(input: RunInput): NewRun {
  return { input: { processor: 'base', ...input }, warnings: [] }
}
