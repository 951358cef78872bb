import {
  catchError,
  defaultIfEmpty,
  defer,
  filter,
  finalize,
  firstValueFrom,
  lastValueFrom,
  map,
  of,
} from 'rxjs'
import { dedupe } from '../../../operators/dedupe.ts'
import { checkId, checkOptions } from '../../protocol/check.ts'
import { isObject, isText } from '../../protocol/json.ts'
import type { GroupRunEvent } from '../../protocol/event.ts'
import type { TaskRun } from '../../protocol/task.ts'
import type { Context } from '../context.ts'
import { checkedInOrder } from '../shapes/checked-in-order.ts'
import { awaitableAs, sourceOf } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'
import { groupRuns } from './runs.ts'
import { groupRun } from './read.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Failed runs of a group with the same error. */
interface RunErrorGroup {
  /** What kind of error the service says it is, in `details` or `detail`; null if it does not say. */
  readonly kind: string | null
  /** The message, at most 500 characters, with `…` in the place of ids; null if the service sends none. */
  readonly message: string | null
  /** Number of runs. */
  readonly count: number
  /** When the first and the last of them ended, in RFC 3339; null if the service does not say. */
  readonly first: string | null
  readonly last: string | null
  /** The ids of the first five of them. */
  readonly run_ids: readonly string[]
}

/** The errors of a group's failed runs. */
export interface GroupErrors {
  /** Number of failed runs so far, of replaced ones too. */
  readonly failed: number
  /** At most 100, the most frequent first. */
  readonly errors: readonly RunErrorGroup[]
  /** Number of failed runs whose error is none of these, because there are more than 100. */
  readonly others: number
}

const MAX_ERRORS = 100
const MAX_RUN_IDS = 5
const MAX_MESSAGE = 500
const NONE: GroupErrors = { failed: 0, errors: [], others: 0 }

/**
 * Groups the failed runs of a group by their error (§1). Emits what is known after each failed run, while the group runs too, and completes
 * with the group. Without a failed run, it emits once, at the end. An `await` resolves to the last emission.
 *
 * Two errors are the same if their kinds and their messages are, apart from ids. A service may leave the errors out of the runs
 * stream (§4.5): then it reads each failed run, one after the other.
 */
export function groupErrors(
  context: Context,
  groupId: string,
  options: SourceOptions = {},
): AwaitableSource<GroupErrors> {
  checkId('groupId', groupId)
  checkOptions('taskGroups.errors', options, ['signal'])
  const errors = defer(() => {
    const ended = new AbortController()
    const counted = new RunErrors()
    let last: Promise<unknown> = Promise.resolve()
    const complete = (run: TaskRun): Promise<TaskRun> => {
      const read = sourceOf(groupRun(context, groupId, run.run_id), ended.signal)
      const next = last.then(() => firstValueFrom(read.pipe(catchError(() => of(run)))))
      last = next
      return next
    }
    const failedRun = (event: GroupRunEvent) => {
      if (event.type !== 'task_run.state' || event.data.run.status !== 'failed') return undefined
      const { run } = event.data
      return run.error == null ? complete(run) : run
    }
    const failed = groupRuns(context, groupId, { status: 'failed' }).pipe(
      dedupe({ scheduler: context.scheduler }),
    )
    return checkedInOrder(failed, failedRun).pipe(
      filter((run) => run !== undefined),
      map((run) => counted.add(run)),
      defaultIfEmpty(NONE),
      finalize(() => ended.abort()),
    )
  })
  return awaitableAs(errors, options.signal, (source) => lastValueFrom(source))
}

/** The errors of failed runs, by kind and message. */
class RunErrors {
  readonly #groups = new Map<string, RunErrorGroup>()
  #failed = 0
  #others = 0

  add(run: TaskRun): GroupErrors {
    this.#failed += 1
    const error = describe(run)
    const key = JSON.stringify([error.kind, error.message])
    const group = this.#groups.get(key) ?? { ...error, count: 0, first: null, last: null, run_ids: [] }
    if (group.count === 0 && this.#groups.size === MAX_ERRORS) this.#others += 1
    else this.#groups.set(key, withRun(group, run))
    const errors = [...this.#groups.values()].toSorted((one, other) => other.count - one.count)
    return { failed: this.#failed, errors, others: this.#others }
  }
}

function withRun({ run_ids, ...group }: RunErrorGroup, { run_id, modified_at }: TaskRun): RunErrorGroup {
  const at = isText(modified_at) && !Number.isNaN(Date.parse(modified_at)) ? modified_at : null
  const time = (text: string) => Date.parse(text)
  const { first, last } = group
  return {
    ...group,
    count: group.count + 1,
    first: at !== null && (first === null || time(at) < time(first)) ? at : first,
    last: at !== null && (last === null || time(at) > time(last)) ? at : last,
    run_ids: run_ids.length < MAX_RUN_IDS ? [...run_ids, run_id] : run_ids,
  }
}

// UUIDs, ids with a prefix, hashes and long numbers; no words and no short numbers.
const IDS =
  /\b(?:[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[a-z]{2,16}_(?=[\da-z]{0,80}\d)[\da-z]{8,}|(?=[a-f]{0,80}\d)[\da-f]{8,}|\d{5,})\b/gi

/** The kind of a run's error, and its message without ids. */
function describe({ run_id, taskgroup_id, error }: TaskRun): Pick<RunErrorGroup, 'kind' | 'message'> {
  const { message, details, detail }: Readonly<Record<string, unknown>> = isObject(error) ? error : {}
  const kinds = [details, detail].flatMap((part) => (isObject(part) ? [part['type'], part['code']] : []))
  const kind = cutText(kinds.find(isText) ?? '', MAX_MESSAGE) || null
  if (!isText(message)) return { kind, message: null }
  // Shortened first, so that a huge message costs no time.
  const ids = [run_id, taskgroup_id].filter(isText)
  const text = ids.reduce((rest, id) => rest.replaceAll(id, '…'), cutText(message, 2 * MAX_MESSAGE))
  return { kind, message: cutText(text.replaceAll(IDS, '…'), MAX_MESSAGE) }
}
