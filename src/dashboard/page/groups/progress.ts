import { isObject } from '../evidence/evidence.ts'

/** Statuses of runs in the order of a bar: the ended ones first. */
const STATUS_ORDER = [
  'completed',
  'failed',
  'cancelled',
  'cancelling',
  'running',
  'action_required',
  'queued',
] as const

/** How far a group is. */
export interface Progress {
  readonly total: number
  /** Runs that have ended. */
  readonly ended: number
  readonly isActive: boolean
  /** Runs by status, in {@link STATUS_ORDER}; statuses that this version does not know come last. Without zeros. */
  readonly counts: readonly (readonly [status: string, count: number])[]
}

const ENDED = new Set<string>(['completed', 'failed', 'cancelled'])

/** The progress that a group's status says, of which each part may be absent. */
export function progressOf(status: unknown): Progress | undefined {
  if (!isObject(status)) return undefined
  const given = isObject(status['task_run_status_counts']) ? status['task_run_status_counts'] : {}
  const counts = Object.entries(given)
    .flatMap(([name, count]) => (typeof count === 'number' && count > 0 ? [[name, count] as const] : []))
    .toSorted(([a], [b]) => rank(a) - rank(b))
  const counted = counts.reduce((sum, [, count]) => sum + count, 0)
  const stated = status['num_task_runs']
  return {
    total: Math.max(counted, typeof stated === 'number' ? stated : 0),
    ended: counts.reduce((sum, [name, count]) => sum + (ENDED.has(name) ? count : 0), 0),
    isActive: status['is_active'] === true,
    counts,
  }
}

function rank(status: string): number {
  const index = STATUS_ORDER.findIndex((each) => each === status)
  return index < 0 ? STATUS_ORDER.length : index
}
