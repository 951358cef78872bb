import { attemptOf } from '../../protocol/attempt.ts'
import { isObject, isText } from '../../protocol/json.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { RUN_STATUSES } from '../../protocol/task.ts'
import type { RunInput, TaskRun } from '../../protocol/task.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import { bounded } from './bounded.ts'
import type { Bounded } from './bounded.ts'
import { isOlder } from './newer.ts'
import { shownId } from './resource.ts'

/** A run that ended. Its path is `[group, run_id]` in `groupView`, with the id of the first attempt, and `[run_id]` in `runView`. */
export interface GroupRunRow {
  readonly kind: 'run'
  readonly run: TaskRun
  /** Null if the run has none, or if the events did not bring it. */
  readonly output: TaskOutput | null
  /** The input, if the events have brought it. */
  readonly input?: RunInput
  /** In `groupView`, if the run replaces another one: its number among the attempts, and the ids of the first of them and of others. */
  readonly attempt?: {
    readonly number: number
    readonly first: string
    /** The ids of other attempts that have ended, at most 20. */
    readonly others?: readonly string[]
  }
  /** Set if a part was too long for the row: long texts end with `…`, and long lists have fewer elements. */
  readonly truncated?: true
  /** When the last change was recorded, in Unix ms. */
  readonly recorded: number
}

/** Maximum sizes of a stored run, of its output and of its input, in bytes. Together they fit into the state of a process. */
const MAX_RUN = 24_576
const MAX_OUTPUT = 163_840
const MAX_INPUT = 49_152
/** Maximum number of ids of other attempts in a row. */
const MAX_OTHERS = 20

/**
 * The row of a run after an entry. Duplicates of one status are merged: a webhook has a run's error and warnings but not its output, and a
 * stream has its output. Another status replaces the row, unless it is older.
 */
export function runRow(row: GroupRunRow | undefined, entry: EntryOf<'task_run.state'>): GroupRunRow {
  const next = rowOf(entry)
  if (row === undefined) return next
  const isSame = row.run.status === next.run.status
  const [first, second] = isBefore(next.run, row.run) ? [next, row] : [row, next]
  // The input stays the same, whatever becomes of the run.
  const input = second.input ?? first.input
  const output = second.output ?? (isSame ? first.output : null)
  const run = isSame ? mergedRun(first.run, second.run) : { value: second.run, isTruncated: false }
  const isTruncated =
    second.truncated === true ||
    run.isTruncated ||
    (first.truncated === true &&
      ((output !== null && output === first.output) || (input !== undefined && input === first.input)))
  return {
    kind: 'run',
    run: run.value,
    output,
    ...(input !== undefined && { input }),
    ...(isTruncated && { truncated: true }),
    recorded: entry.recorded,
  }
}

/** Like {@link runRow}, for a group, whose runs may replace each other: the row has the last attempt at an input that has ended. */
export function attemptRow(row: GroupRunRow | undefined, entry: EntryOf<'task_run.state'>): GroupRunRow {
  const { number, first } = attemptOf(entry.data)
  const shown = row?.attempt?.number ?? 1
  const id = shownId(entry.data.run.run_id)
  const isSame = row?.run.run_id === id
  // Two processes may have replaced the same run: then the one that completed stays.
  if (
    row !== undefined &&
    !isSame &&
    (number < shown || (number === shown && row.run.status === 'completed'))
  )
    return withOther(row, id)
  const next = runRow(isSame ? row : undefined, entry)
  if (number === 1) return next
  const { others } = row?.attempt ?? {}
  const attempted = { ...next, attempt: { number, first: shownId(first), ...(others && { others }) } }
  return row === undefined || isSame ? attempted : withOther(attempted, row.run.run_id)
}

/** The row with the id of another attempt than the first, at which a link may point. */
function withOther(row: GroupRunRow, id: string): GroupRunRow {
  const { attempt } = row
  const others = attempt?.others ?? []
  if (attempt === undefined || id === attempt.first || others.includes(id)) return row
  return { ...row, attempt: { ...attempt, others: [...others, id].slice(-MAX_OTHERS) } }
}

/** The second run, with the error and the warnings that only the first has: a group's stream may leave both out (§4.5). */
function mergedRun(first: TaskRun, second: TaskRun): Bounded<TaskRun> {
  const error = second.error ?? first.error
  const warnings = second.warnings ?? first.warnings
  const merged = { ...second, ...(error != null && { error }), ...(warnings != null && { warnings }) }
  return bounded(merged, MAX_RUN, second)
}

function rowOf({ data, recorded }: EntryOf<'task_run.state'>): GroupRunRow {
  const run = bounded(data.run, MAX_RUN, restOf(data.run))
  const output = bounded(isObject(data.output) ? data.output : null, MAX_OUTPUT, null)
  const input = bounded(isObject(data.input) ? data.input : undefined, MAX_INPUT, undefined)
  const isTruncated = run.isTruncated || output.isTruncated || input.isTruncated
  return {
    kind: 'run',
    run: run.value,
    output: output.value,
    ...(input.value !== undefined && { input: input.value }),
    ...(isTruncated && { truncated: true }),
    recorded,
  }
}

/** The part of a run that is kept if no shortening makes it small enough. */
function restOf({ run_id, status, is_active, taskgroup_id }: TaskRun): TaskRun {
  return {
    run_id: shownId(run_id),
    status: RUN_STATUSES.find((known) => known === status) ?? 'queued',
    is_active: is_active === true,
    processor: '',
    created_at: null,
    modified_at: null,
    ...(isText(taskgroup_id) && { taskgroup_id: shownId(taskgroup_id) }),
  }
}

/** Whether the first state comes before the second one. A completed run no longer changes. */
function isBefore(one: TaskRun, other: TaskRun): boolean {
  if (one.status === other.status) return isOlder(one.modified_at, other.modified_at)
  if (other.status === 'completed') return true
  return one.status !== 'completed' && isOlder(one.modified_at, other.modified_at)
}
