import { distinctUntilChanged, map } from 'rxjs'
import { ofType } from '../../../operators/of-type.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import { checkOptions } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { Context } from '../context.ts'
import { groupEvents } from './events.ts'
import type { GroupEventsOptions } from './events.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source } from '../shapes/source.ts'

/** Options of `taskGroups.progress`. */
export type GroupProgressOptions = Pick<GroupEventsOptions, 'last_event_id' | 'signal'>

/** How far a task group is. */
export interface GroupProgress {
  /** Runs of the group. */
  readonly total: number
  /** Runs in each status; a status that no run has may be missing. */
  readonly counts: TaskGroupStatus['task_run_status_counts']
  /** Runs that have ended, with success or not. */
  readonly ended: number
  /** Whether a run of the group is active. */
  readonly active: boolean
  /** `ended` of `total`, from 0 to 1; 0 for a group without runs. */
  readonly fraction: number
}

/**
 * How far a group is, from the status events of its stream (§4.4): what changed is emitted, and repetitions are not.
 * Completes with the group. `last_event_id` begins behind that event, instead of at the group's beginning.
 */
export function groupProgress(
  context: Context,
  groupId: string,
  options: GroupProgressOptions = {},
): Source<GroupProgress> {
  checkOptions('options', options, ['last_event_id', 'signal'])
  const { signal, ...query } = options
  const progress = groupEvents(context, groupId, query).pipe(
    ofType('task_group.status'),
    map(({ data }) => progressOf(data.status)),
    distinctUntilChanged(isSame),
  )
  return sourceOf(progress, signal)
}

function progressOf({ num_task_runs, task_run_status_counts, is_active }: TaskGroupStatus): GroupProgress {
  const counts: TaskGroupStatus['task_run_status_counts'] = isObject(task_run_status_counts)
    ? Object.fromEntries(Object.entries(task_run_status_counts).filter(([, count]) => isCount(count)))
    : {}
  const { completed = 0, failed = 0, cancelled = 0 } = counts
  const ended = completed + failed + cancelled
  const total = isCount(num_task_runs) ? num_task_runs : 0
  return {
    total,
    counts,
    ended,
    active: is_active === true,
    fraction: total > 0 ? Math.min(1, ended / total) : 0,
  }
}

/** A service may send anything where the interface has a count. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0
}

function isSame(one: GroupProgress, other: GroupProgress): boolean {
  const statuses = new Set([...Object.keys(one.counts), ...Object.keys(other.counts)])
  return (
    one.total === other.total &&
    one.active === other.active &&
    [...statuses].every((status) => countOf(one, status) === countOf(other, status))
  )
}

function countOf({ counts }: GroupProgress, status: string): number {
  const known: Readonly<Record<string, number>> = counts
  return known[status] ?? 0
}
