import { RUN_STATUSES } from '../../protocol/task.ts'
import type { TaskRun } from '../../protocol/task.ts'

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
const KNOWN: ReadonlySet<string> = new Set(RUN_STATUSES)

/** Whether the run has ended. A service may know more statuses: for these, `is_active` decides. */
export function hasEnded({ status, is_active }: TaskRun): boolean {
  return KNOWN.has(status) ? ENDED.has(status) : is_active === false
}
